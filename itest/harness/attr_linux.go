package harness

import "syscall"

// childAttr puts a child into its own process group, and has the kernel kill it
// when the thread that started it ends (see spawn: that thread lives as long as
// the test binary).
func childAttr(uid int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if uid != 0 {
		a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return a
}
