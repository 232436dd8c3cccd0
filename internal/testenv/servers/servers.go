// Package servers starts real programs for tests and benchmarks: S3-compatible servers, and other
// programs that listen at an address. They end with their test. Tests that need them are skipped
// unless TEST_SERVERS is set.
package servers

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/followpress/followpress/internal/testenv/process"
)

// A Kind is a program that serves S3.
type Kind string

// Kinds of servers, named after their commands.
const (
	MinIO     Kind = "minio"
	VersityGW Kind = "versitygw"
)

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{MinIO, VersityGW} }

// A Server is a process that listens on this machine only.
type Server struct {
	Kind                 Kind
	Endpoint             string // http://127.0.0.1:port
	AccessKey, SecretKey string

	t           testing.TB
	binary      string
	folder      string
	environment []string         // in addition to the variables of its kind
	process     *process.Process // nil while it is stopped
}

// StartEncrypting starts a MinIO that encrypts everything as SSE-KMS does, so that ETags are not MD5s.
func StartEncrypting(t testing.TB) *Server {
	t.Helper()
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	return Start(t, MinIO, "MINIO_KMS_SECRET_KEY=test:"+key, "MINIO_KMS_AUTO_ENCRYPTION=on")
}

// patience limits the time of an answer. On an idle machine, servers take less than a second.
const patience = time.Minute

// Start starts a server without data, which ends with the test. environment adds variables, "NAME=value". The test is
// skipped unless TEST_SERVERS is set.
func Start(t testing.TB, kind Kind, environment ...string) *Server {
	t.Helper()
	Wanted(t)
	s := &Server{
		Kind: kind, Endpoint: "http://" + FreeAddress(t), AccessKey: "test-access", SecretKey: "test-secret-key",
		t: t, binary: binary(t, kind), folder: t.TempDir(), environment: environment,
	}
	for _, name := range []string{"data", "home"} {
		if err := os.Mkdir(filepath.Join(s.folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.Start()
	return s
}

// Start restarts a stopped server, at the same address and with its data.
func (s *Server) Start() {
	s.t.Helper()
	if s.process != nil {
		s.t.Fatalf("%s runs already", s.Kind)
	}
	command := s.Kind.Command(s.binary, strings.TrimPrefix(s.Endpoint, "http://"), s.folder, s.AccessKey, s.SecretKey)
	command.Env = append(command.Env, s.environment...)
	s.process = process.Start(s.t, command)
	if err := s.waitUntilReady(); err != nil {
		s.t.Fatalf("start %s: %v", s.Kind, err)
	}
}

// Command returns a command, not started, that runs the server. The server stores everything in
// folder, which must have the folders data and home, and ends when this process ends.
func (k Kind) Command(binary, address, folder, accessKey, secretKey string) *exec.Cmd {
	data := filepath.Join(folder, "data")
	arguments := []string{"--quiet", "--keep-alive", "--port", address, "posix", data}
	environment := []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey}
	if k == MinIO {
		arguments = []string{"server", "--quiet", "--address", address, data}
		environment = []string{
			"MINIO_ROOT_USER=" + accessKey, "MINIO_ROOT_PASSWORD=" + secretKey,
			"MINIO_BROWSER=off", "MINIO_UPDATE=off", "_MINIO_SCANNER=off",
		}
	}
	command := exec.Command(binary, arguments...)
	command.Env = append(environment, "HOME="+filepath.Join(folder, "home"))
	process.DieWithParent(command)
	return command
}

// Stop kills the server, as a crash would. It does nothing if the server is stopped.
func (s *Server) Stop() {
	s.t.Helper()
	if s.process == nil {
		return
	}
	s.process.Signal(syscall.SIGKILL)
	s.process.Wait()
	s.process = nil
}

// Env sets the credentials in the environment of the test to the server's, and hides all others.
func (s *Server) Env(t testing.TB) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": s.AccessKey, "AWS_SECRET_ACCESS_KEY": s.SecretKey, "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
}

// Client returns a client that does not use the code under test.
func (s *Server) Client() *minio.Client {
	s.t.Helper()
	return s.clientOf(s.AccessKey)
}

func (s *Server) clientOf(accessKey string) *minio.Client {
	s.t.Helper()
	client, err := minio.New(strings.TrimPrefix(s.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(accessKey, s.SecretKey, ""), Region: "us-east-1", MaxRetries: 1,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// Bucket makes a bucket and returns its name, which is random.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test-%016x", rand.Uint64())
	if err := s.Client().MakeBucket(context.Background(), name, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// Upload puts the files of a folder into a bucket, each under prefix/name.
func (s *Server) Upload(t testing.TB, bucket, prefix, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		key, file := prefix+"/"+entry.Name(), filepath.Join(folder, entry.Name())
		if _, err := s.Client().FPutObject(t.Context(), bucket, key, file, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// waitUntilReady waits until the server answers correctly. MinIO recognizes its owner before it
// rejects strangers.
func (s *Server) waitUntilReady() error {
	owner, stranger := s.Client(), s.clientOf("a-stranger")
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := owner.ListBuckets(ctx)
		if err == nil {
			if _, refusal := stranger.ListBuckets(ctx); minio.ToErrorResponse(refusal).StatusCode/100 != 4 {
				err = fmt.Errorf("a stranger got %w, want a refusal", refusal)
			}
		}
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-s.process.Ended():
			return errors.New("the server has ended")
		default:
		}
		if time.Since(begun) > patience {
			return err
		}
	}
}

// givenAddresses holds the addresses that FreeAddress returned. No server may listen there yet.
var givenAddresses sync.Map

// FreeAddress returns a loopback address where no process listens. Its port is below the range for
// outgoing connections, so that none takes the port while a server starts or stops.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		if _, given := givenAddresses.LoadOrStore(address, true); !given {
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

// binary returns the path of the program that the Makefile built at the root of the module.
func binary(t testing.TB, kind Kind) string {
	t.Helper()
	// Tests in the module beam use the same programs.
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/followpress/followpress").Output()
	if err != nil {
		t.Fatalf("find the root of the module: %v", err)
	}
	name := filepath.Join(strings.TrimSpace(string(root)), ".tools", string(kind))
	if _, err := os.Stat(name); err != nil {
		t.Fatalf("%v: `make test-tools` builds it", err)
	}
	return name
}
