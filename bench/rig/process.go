// Package rig starts servers and wrk for the benchmarks.
//
// The API may change in any release.
package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience limits the time until a server listens.
const patience = 10 * time.Second

// A Process is a running server.
type Process struct {
	Addr    string
	command *exec.Cmd
}

// Start starts a server at a free address and waits until it listens.
func Start(ctx context.Context, command func(addr string) (*exec.Cmd, error)) (*Process, error) {
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	c, err := command(addr)
	if err != nil {
		return nil, err
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &Process{addr, c}
	for begun := time.Now(); time.Since(begun) < patience && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return p, conn.Close()
		}
	}
	p.Stop()
	return nil, fmt.Errorf("%s does not listen on %s", c.Path, addr)
}

// Stop ends the server.
func (p *Process) Stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = p.command.Wait()
}

// PeakMemory returns the peak resident memory of the process so far, in MiB.
func (p *Process) PeakMemory() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			return float64(kib) / 1024, err
		}
	}
	return 0, errors.New("the system does not tell the peak memory")
}

// Processor returns the processor time of the process so far.
func (p *Process) Processor() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), ") ") // man 5 proc_pid_stat: utime and stime are 14th and 15th, the name the 2nd
	fields := strings.Fields(after)
	const utime, ticks = 14 - 3, 100 // ticks per second, the same on every current system
	if len(fields) < utime+2 {
		return 0, errors.New("the system does not report the processor time")
	}
	user, err := strconv.Atoi(fields[utime])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[utime+1])
	return time.Duration(user+system) * time.Second / ticks, err
}

// FreeAddr returns a local address on which no process listens.
func FreeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

const nginxConfig = `worker_processes 2; daemon off; pid %[1]s/nginx.pid; error_log %[1]s/nginx.log;
events { worker_connections 1024; }
http { access_log off; default_type application/json; server { listen %[2]s; root %[3]s; } }
`

// Nginx starts nginx, which serves the files of the site.
func (b *Bench) Nginx(ctx context.Context) (*Process, error) {
	if _, err := exec.LookPath("nginx"); err != nil {
		return nil, errors.New("nginx and wrk are needed: make installs them")
	}
	return Start(ctx, func(addr string) (*exec.Cmd, error) {
		config := b.Path("nginx.conf")
		return exec.CommandContext(ctx, "nginx", "-c", config), errors.Join(
			os.WriteFile(config, fmt.Appendf(nil, nginxConfig, b.Work, addr, b.Path("site")), 0o644),
			os.Chmod(b.Work, 0o755), // nginx's workers run as another user and must read the site
		)
	})
}

const nginxEdgeConfig = `load_module /usr/lib/nginx/modules/ngx_http_js_module.so;
worker_processes 2; daemon off; pid nginx.pid; error_log nginx.log; pcre_jit on;
events { worker_connections 1024; }
http { access_log off; include followpress.conf; }
`

// NginxEdge returns the command of nginx as an edge, with the configuration that followpress edge
// wrote into the folder.
func NginxEdge(ctx context.Context, dir string) (*exec.Cmd, error) {
	config := filepath.Join(dir, "nginx.conf")
	return exec.CommandContext(ctx, "nginx", "-p", dir, "-c", config), os.WriteFile(config, []byte(nginxEdgeConfig), 0o644)
}

// Get requests a URL, which must answer with 200.
func Get(url string) ([]byte, error) {
	response, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return body, nil
}
