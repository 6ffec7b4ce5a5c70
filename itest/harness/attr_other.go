//go:build !linux

package harness

import "syscall"

func childAttr(int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
