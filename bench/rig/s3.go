package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// Credentials of the servers.
const (
	AccessKey = "bench-access"
	SecretKey = "bench-secret-key"
)

const (
	// s3Patience limits the time of an answer.
	s3Patience = time.Minute
	// settle gives a server time to finish the work of its start.
	settle = time.Second
)

// S3 is a running S3-compatible server.
type S3 struct {
	Addr   string
	Client *minio.Client
	folder string
}

// ServeS3 runs a server over a folder until use returns, and returns the server's resource usage.
// It creates the folder if necessary. Each part of a measurement has a server of its own, so that
// earlier requests do not affect it. tools is the folder with the server's binary.
func ServeS3(ctx context.Context, kind servers.Kind, tools, folder string, use func(*S3) error) (measure.Usage, error) {
	s := &S3{folder: folder}
	var err error
	if s.Addr, err = FreeAddr(); err != nil {
		return measure.Usage{}, err
	}
	s.Client, err = minio.New(s.Addr, &minio.Options{Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: "us-east-1"})
	if err != nil {
		return measure.Usage{}, err
	}
	for _, sub := range []string{"data", "home"} {
		if err := os.MkdirAll(filepath.Join(s.folder, sub), 0o755); err != nil {
			return measure.Usage{}, err
		}
	}
	process := kind.Command(filepath.Join(tools, string(kind)), s.Addr, s.folder, AccessKey, SecretKey)
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
	_ = process.Wait() // it was killed, so Wait always fails
	return measure.UsageOf(process.ProcessState), err
}

func (s *S3) ready(ctx context.Context) error {
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := s.Client.ListBuckets(ctx)
		if err == nil {
			time.Sleep(settle)
			return nil
		}
		if ctx.Err() != nil || time.Since(begun) > s3Patience {
			return fmt.Errorf("the server at %s does not answer: %w", s.Addr, err)
		}
	}
}

// MakeBucket makes a bucket.
func (s *S3) MakeBucket(ctx context.Context, name string) error {
	return s.Client.MakeBucket(ctx, name, minio.MakeBucketOptions{})
}

// Command returns the command of a client, with an environment for this server only and without the
// user's configuration.
func (s *S3) Command(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, arguments...)
	c.Env = []string{
		"HOME=" + filepath.Join(s.folder, "home"), "AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey,
		"FOLLOWPRESS_ENDPOINT=http://" + s.Addr,
		"RCLONE_CONFIG=" + os.DevNull, "RCLONE_S3_ENV_AUTH=true", "RCLONE_S3_PROVIDER=Minio", "RCLONE_S3_REGION=us-east-1",
		"RCLONE_S3_ENDPOINT=http://" + s.Addr,
	}
	return c
}
