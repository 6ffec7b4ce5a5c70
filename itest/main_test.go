//go:build itest

package itest

import (
	"os"
	"testing"

	"applier/itest/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
