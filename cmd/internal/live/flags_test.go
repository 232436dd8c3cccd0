package live

import (
	"strings"
	"testing"

	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

var unreachable = meanrpc.Faults{Trouble: meanrpc.Every(1, meanrpc.Trouble{Status: 503})}

// Wrong usage is one clear error, before any work.
func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--state s":                                                                   "--rpc=CHAIN=URL,URL",
		"--rpc 1=http://n":                                                            "--state=DIR",
		"--rpc 1=ftp://n --state s":                                                   "chain 1: want URLs like https://HOST/KEY",
		"--rpc 1=wss://n --state s3://b":                                              "must be a folder on this machine",
		"--rpc 1=http://n --state s --max-lag 2s":                                     "a minute or more",
		"--rpc 1=http://n --state s --publish-every 5s":                               "a minute or more",
		"--rpc 1=http://n --state s --poll 0s":                                        "--poll must be positive",
		"--rpc 1=http://n --state s --dest bucket":                                    "--dest:",
		"--rpc 1=http://n --state s --purge nowhere:1 --dest s3://bucket":             "--purge",
		"--rpc 1=http://n --state /d/s --dest file:///d":                              "which is public",
		"--rpc 1=http://n --state s --dest s3://bkt/a --state-copy s3://bkt/a/b":      "which is public",
		"--rpc 1=http://n --state s --dest s3://bkt --state-copy s3://bkt/state":      "which is public",
		"--rpc 1=http://n --state s --state-copy bucket":                              "--state-copy:",
		"--rpc 1=http://n --state s --badges https://poap":                            "--badge-events",
		"--rpc 1=http://n --state s --quorum 2":                                       "--quorum=2: chain 1 has 1 URLs",
		"--rpc 1=http://n --state s --profile-upstream nowhere --dest file:///bucket": "upstream",
	} {
		t.Run(args, func(t *testing.T) {
			_, err := parse(strings.Fields(args)...)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: got %v, want one line with %q", args, err, want)
			}
		})
	}
	for _, args := range []string{
		"--rpc 1=wss://n,https://m;10=http://o --state s --dest s3://bkt/a --state-copy s3://bkt/b",
		"--rpc 1=http://n --state s --dest file:///bucket --rate 2",
	} {
		if _, err := parse(strings.Fields(args)...); err != nil {
			t.Errorf("%s: got %v, want no error", args, err)
		}
	}
}
