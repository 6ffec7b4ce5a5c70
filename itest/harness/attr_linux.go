package harness

import "syscall"

// childAttr puts a child into its own process group, and has the kernel kill it
// when the thread that started it ends (see spawn: that thread lives as long as
// the test binary).
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
