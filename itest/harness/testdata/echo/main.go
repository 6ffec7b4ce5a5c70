// Command echo stands in for the daemon in the harness's own tests.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	fmt.Println("started", os.Args[1:], os.Getenv("X"))
	<-stop
	fmt.Println("drained")
}
