package config_test

import (
	"fmt"
	"strings"
	"testing"

	"applier/config"
)

func BenchmarkParse_Pipelines(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var text strings.Builder
			text.WriteString("version: 1\nkafka: { brokers: [k:9092] }\nwarehouse: /w\nmemory: 64GiB\npipelines:\n")
			for i := range n {
				fmt.Fprintf(&text, "  p%d: { source: { topic: t%d, format: json }, target: db.t%d, key: [id] }\n", i, i, i)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := config.Parse("b.yml", []byte(text.String()), testEnv); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
