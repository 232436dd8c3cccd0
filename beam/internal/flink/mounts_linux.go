package flink

import (
	"syscall"

	"github.com/followpress/followpress/beam/internal/loopback"
)

// isolated reports whether processes may have separate mounts.
func isolated() bool { return loopback.Inside() }

func ownMounts() *syscall.SysProcAttr { return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS} }
