// Package loopback runs the tests of a package in a separate network, unreachable from outside.
// Prism, Beam's worker pool and Flink's job server listen on all interfaces, and the pool always at
// the same port; none of this can be configured. The pool runs anything it is asked to run, so it
// must not be reachable even during a test.
package loopback

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/internal/testenv/process"
)

// inside is set in the environment of tests in a separate network.
const inside = "FOLLOWPRESS_LOOPBACK"

// powerless is the exit status of a process in new namespaces without permissions there: some
// systems grant only the namespaces. Test binaries do not use it.
const powerless = 97

// Main runs the tests of a package; its TestMain does nothing else after calling it. It runs the
// test binary again in new network and mount namespaces, as root or as any user who may create
// namespaces. Where nobody may, as in most containers, it prints a note and runs the tests in the
// existing network.
func Main(m *testing.M) {
	if Inside() {
		if err := up(); err != nil {
			fmt.Fprintln(os.Stderr, "raise the loopback interface:", err)
			os.Exit(powerless)
		}
		os.Exit(m.Run())
	}
	status, err := runInNamespaces()
	if err != nil {
		fmt.Fprintf(os.Stderr, "no network of their own for these tests, they listen on all interfaces: %v\n", err)
		status = m.Run()
	}
	os.Exit(status)
}

// Inside reports whether this process is in the network and mount namespaces of its tests.
func Inside() bool { return os.Getenv(inside) != "" }

// runInNamespaces runs this program in new namespaces, and returns its exit status.
func runInNamespaces() (int, error) {
	binary, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var refusals []error
	for _, attributes := range []*syscall.SysProcAttr{asRoot(), asUser()} {
		command := exec.Command(binary, os.Args[1:]...)
		command.Env = append(os.Environ(), inside+"=1")
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
		command.SysProcAttr = attributes
		process.DieWithParent(command)
		if err := command.Start(); err != nil {
			refusals = append(refusals, err)
			continue
		}
		_ = command.Wait() // ProcessState has the result
		switch status := command.ProcessState.ExitCode(); status {
		case powerless:
			refusals = append(refusals, errors.New("namespaces without power over them"))
		case -1: // a signal
			return 1, nil
		default:
			return status, nil
		}
	}
	return 0, errors.Join(refusals...)
}

func asRoot() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
}

// asUser also creates a user namespace, in which this user may do what root may do with networks
// and mounts.
func asUser() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN},
	}
}

// up raises the loopback interface, the only one in a new network.
func up() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}
