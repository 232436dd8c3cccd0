// Package loopback runs the tests of a package in a network of their own, which nothing outside can reach. Prism, Beam's
// worker pool and Flink's job server listen on all interfaces, and the pool always at the same port: none of them can be
// told otherwise. The pool runs whatever it is asked to run, so it must not be reachable even for the time of a test.
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

// inside is set in the environment of the tests in a network of their own.
const inside = "FOLLOWPRESS_LOOPBACK"

// powerless is the exit status of a process that is in namespaces of its own and may do nothing there: some systems
// grant the one and not the other. No test binary has it.
const powerless = 97

// Main runs the tests of a package; its TestMain calls it and does nothing else then. It runs the test binary again in
// namespaces of its own for the network and for mounts, as root or as any user who may make namespaces. Where nobody may
// make them, as in most containers, it says so and runs the tests in the network that is there.
func Main(m *testing.M) {
	if Inside() {
		if err := up(); err != nil {
			fmt.Fprintln(os.Stderr, "raise the loopback interface:", err)
			os.Exit(powerless)
		}
		os.Exit(m.Run())
	}
	status, err := again()
	if err != nil {
		fmt.Fprintf(os.Stderr, "no network of their own for these tests, they listen on all interfaces: %v\n", err)
		status = m.Run()
	}
	os.Exit(status)
}

// Inside reports whether this process is in a network, and a mount namespace, of its tests only.
func Inside() bool { return os.Getenv(inside) != "" }

// again runs this program again in namespaces of its own, and returns its exit status.
func again() (int, error) {
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

// asUser makes a namespace of users too, in which this user may do what root may do with networks and mounts.
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
