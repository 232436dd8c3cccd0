//go:build !linux

package flink

import "syscall"

func isolated() bool { return false }

func ownMounts() *syscall.SysProcAttr { return nil }
