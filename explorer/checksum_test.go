package explorer

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/followpress/followpress/internal/testenv/servers"
)

// Checksums of addresses, and Keccak-256 of any number of bytes, equal go-ethereum's.
func TestChecksums(t *testing.T) {
	servers.Wanted(t)
	random := rand.New(rand.NewPCG(1, 2))
	bytes := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	var cases strings.Builder
	for range 200 {
		cases.WriteString(common.BytesToAddress(bytes(20)).Hex() + "\n")
	}
	for n := range 300 { // more than two blocks, and their boundaries
		b := bytes(n)
		cases.WriteString(common.Bytes2Hex(b) + " " + common.Bytes2Hex(crypto.Keccak256(b)) + "\n")
	}
	built := bundle(api.BuildOptions{
		Stdin: &api.StdinOptions{Sourcefile: "testdata/checksums.ts", Loader: api.LoaderTS, Contents: `
			import { checksummed, keccak256 } from '../src/data/checksum';
			for (const line of process.argv[2].trim().split('\n')) {
				const [bytes, hash] = line.split(' ');
				const got = hash === undefined ? checksummed(bytes.toLowerCase()) : keccak256(Uint8Array.from(bytes.match(/../g) ?? [], (byte) => parseInt(byte, 16)));
				if (got !== (hash ?? bytes)) {
					throw new Error('got ' + got + ', want ' + (hash ?? bytes));
				}
			}`},
		Format: api.FormatESModule,
	})
	script := filepath.Join(t.TempDir(), "checksums.mjs")
	if err := os.WriteFile(script, built.OutputFiles[0].Contents, 0o600); err != nil {
		t.Fatal(err)
	}
	runNode(t, script, cases.String())
}
