// Package databases starts PostgreSQL and PgBouncer for tests, and fills databases as the two indexers
// of the Ethereum Follow Protocol do. Servers end with their test. Tests that need them are skipped
// unless TEST_SERVERS is set.
package databases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// A Server is a PostgreSQL that listens on this machine only. Anybody may connect as the superuser
// test.
type Server struct {
	Address string // 127.0.0.1:port

	folder  string
	account *syscall.Credential // runs the server; nil means the account of this process
	process *process.Process
}

// patience is how long a server may take to answer.
const patience = time.Minute

// Start makes a cluster without data and starts it. settings are those of postgresql.conf,
// "name=value". The test is skipped unless TEST_SERVERS is set.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	servers.Wanted(t)
	s := newServer(t)
	s.run(t, program(t, "initdb"), "--pgdata", s.data(), "--username", "test", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	s.start(t, settings)
	return s
}

// Replica starts a server that follows s.
func (s *Server) Replica(t testing.TB, settings ...string) *Server {
	t.Helper()
	replica := newServer(t)
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	replica.run(t, program(t, "pg_basebackup"), "--pgdata", replica.data(), "--host", host, "--port", port, "--username", "test",
		"--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
	replica.start(t, settings)
	return replica
}

func newServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{Address: servers.FreeAddress(t)}
	s.account = account(t)
	s.folder = s.newFolder(t)
	return s
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

// account returns the account for PostgreSQL's processes, which refuse to run as root.
func account(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	group, err := strconv.ParseUint(nobody.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(id), Gid: uint32(group)}
}

// newFolder makes a folder that the account can use. t.TempDir is in a folder that only we can enter.
func (s *Server) newFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "followpress-databases-*") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if s.account != nil {
		if err := os.Chown(folder, int(s.account.Uid), int(s.account.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// command returns a command that runs under the server's account.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = s.folder
	c.Env = append(os.Environ(), "HOME="+s.folder)
	if s.account != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: s.account}
	}
	return c
}

func (s *Server) run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// program finds a program of PostgreSQL. Debian has them in a folder for each version.
func program(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	paths, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s: `make test-tools` installs what it needs", name)
	}
	return paths[len(paths)-1]
}

func (s *Server) start(t testing.TB, settings []string) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-D", s.data()}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1", "port=" + port, "unix_socket_directories=",
		"fsync=off", "synchronous_commit=off", "full_page_writes=off", // a test's data need not survive a crash
	}, settings...) {
		args = append(args, "-c", setting)
	}
	s.process = process.Start(t, s.command(program(t, "postgres"), args...))
	t.Cleanup(func() {
		s.process.Signal(syscall.SIGQUIT) // does not wait for clients
		s.process.Wait()
	})
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if err := try(s.DSN("postgres")); err == nil {
			return
		} else if time.Since(begun) > patience {
			t.Fatalf("postgres does not answer: %v\n%s", err, s.process.Output())
		}
		select {
		case <-s.process.Ended():
			t.Fatalf("postgres has ended:\n%s", s.process.Output())
		default:
		}
	}
}

func try(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

// DSN returns the URL of a database of the server.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("postgres://test@%s/%s?sslmode=disable", s.Address, database)
}

// Database makes an empty database and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%016x", rand.Uint64())
	Exec(t, s.DSN("postgres"), "CREATE DATABASE "+name)
	return s.DSN(name)
}

// Exec runs statements in a database.
func Exec(t testing.TB, dsn, sql string) {
	t.Helper()
	with(t, dsn, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.PgConn().Exec(ctx, sql).ReadAll()
		return err
	})
}

func with(t testing.TB, dsn string, do func(ctx context.Context, c *pgx.Conn) error) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	if err := do(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// Bouncer starts a PgBouncer in transaction mode between clients and the server, and returns its
// address. Every transaction may get another connection.
func (s *Server) Bouncer(t testing.TB) string {
	t.Helper()
	address := servers.FreeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	serverHost, serverPort, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.folder, "pgbouncer.ini")
	settings := fmt.Sprintf(`[databases]
* = host=%s port=%s user=test
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
server_round_robin = 1
`, serverHost, serverPort, host, port)
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	name, err := exec.LookPath("pgbouncer")
	if err != nil {
		name = "/usr/sbin/pgbouncer"
	}
	servers.Listen(t, address, s.command(name, file))
	return address
}
