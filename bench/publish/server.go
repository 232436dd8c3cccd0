package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/followpress/followpress/bench/internal/measure"
	"github.com/followpress/followpress/fixtures/servers"
)

const (
	accessKey = "bench-access"
	secretKey = "bench-secret-key"
	bucket    = "site"
	// patience is how long a server may take to answer.
	patience = time.Minute
	// settle lets a server end what it does after its start.
	settle = time.Second
)

// A server is one that runs.
type server struct {
	address, folder string
	client          *minio.Client
}

// serve runs a server over a folder, which it makes if need be, while use does, and
// gives what the server took. Each part of a measurement has a server of its own:
// it must not pay for what was asked before.
func (b *bench) serve(ctx context.Context, kind servers.Kind, name string, use func(*server) error) (measure.Usage, error) {
	s := &server{folder: b.path(name)}
	var err error
	if s.address, err = freeAddress(); err != nil {
		return measure.Usage{}, err
	}
	s.client, err = minio.New(s.address, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: "us-east-1"})
	if err != nil {
		return measure.Usage{}, err
	}
	for _, sub := range []string{"data", "home"} {
		if err := os.MkdirAll(filepath.Join(s.folder, sub), 0o755); err != nil {
			return measure.Usage{}, err
		}
	}
	process := kind.Command(filepath.Join(b.tools, string(kind)), s.address, s.folder, accessKey, secretKey)
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		return measure.Usage{}, err
	}
	err = s.ready(ctx)
	if err == nil {
		err = use(s)
	}
	if killed := process.Process.Kill(); killed != nil {
		err = errors.Join(err, fmt.Errorf("stop %s: %w", kind, killed))
	}
	_ = process.Wait() // it was killed: there always is an error
	return measure.UsageOf(process.ProcessState), err
}

func (s *server) ready(ctx context.Context) error {
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := s.client.ListBuckets(ctx)
		if err == nil {
			time.Sleep(settle)
			return nil
		}
		if ctx.Err() != nil || time.Since(begun) > patience {
			return fmt.Errorf("the server at %s does not answer: %w", s.address, err)
		}
	}
}

func (s *server) makeBucket(ctx context.Context, name string) error {
	return s.client.MakeBucket(ctx, name, minio.MakeBucketOptions{})
}

// command is a client's, which knows this server and nothing of the machine's user.
func (s *server) command(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, arguments...)
	c.Env = []string{
		"HOME=" + filepath.Join(s.folder, "home"), "AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey,
		"RCLONE_CONFIG=" + os.DevNull, "RCLONE_S3_ENV_AUTH=true", "RCLONE_S3_PROVIDER=Minio", "RCLONE_S3_REGION=us-east-1",
		"RCLONE_S3_ENDPOINT=http://" + s.address,
	}
	return c
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
