package pipeline

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/site"
)

// Engines may keep all values of a key in memory, and some accounts have millions of followers. So
// values about a hot account are spread over several keys, its salts, by a hash of their source. A
// sample of the records finds the hot accounts; an error of the sample only makes a group somewhat
// larger.

func init() {
	dofn.Register3x1(&sampleFn{})
	dofn.Register3x0(&hotFn{})
}

// sampleRate is the number of records per sampled record.
const sampleRate = 64

// hashOf gives the same result on all machines of a run. People who choose the texts cannot know
// the seed, nor find texts with equal hashes for every seed, as would be possible with a faster
// hash.
func hashOf(seed uint64, texts ...[]byte) uint64 {
	var room [64]byte
	b := binary.LittleEndian.AppendUint64(room[:0], seed)
	for _, text := range texts {
		b = append(b, text...)
	}
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// A sampleFn counts a sample of the records of lists by their account.
type sampleFn struct {
	HotAfter int
	Seed     uint64

	list wire.List
}

func (f *sampleFn) ProcessElement(_ string, value []byte, emit func(string, int64)) error {
	if value[0] != kindList {
		return nil
	}
	d := wire.Decode(value[1:])
	d.List(&f.list)
	rate := sampleRateOf(f.HotAfter)
	for i := range f.list.Records {
		r := &f.list.Records[i]
		if r.IsAddress && hashOf(f.Seed, []byte(f.list.Token), r.Address[:])%rate == 0 {
			emit(wire.AddressKey(r.Address), int64(rate))
		}
	}
	return d.Err()
}

// sampleRateOf returns 1 if groups are too small for a sample, as in tests.
func sampleRateOf(hotAfter int) uint64 {
	if hotAfter < 8*sampleRate {
		return 1
	}
	return sampleRate
}

// A hotFn emits hot accounts with the number of their salts.
type hotFn struct {
	HotAfter int
	Seed     uint64
}

func (f *hotFn) ProcessElement(address string, records int64, emit func([]byte)) {
	if records > int64(f.HotAfter) {
		a := wire.KeyAddress(address)
		emit(wire.AppendNumbers(a[:], uint64(records)/uint64(f.HotAfter)+1, f.Seed))
	}
}

// hotAccounts finds the hot accounts among the subjects of records.
func hotAccounts(s beam.Scope, lists beam.PCollection, hotAfter int) beam.PCollection {
	s = s.Scope("hot accounts")
	seed := rand.Uint64()
	return hotOf(s, beam.ParDo(s, &sampleFn{HotAfter: hotAfter, Seed: seed}, lists), hotAfter, seed)
}

// hotOf finds the hot accounts in a sample.
func hotOf(s beam.Scope, sample beam.PCollection, hotAfter int, seed uint64) beam.PCollection {
	return beam.ParDo(s, &hotFn{hotAfter, seed}, beam.CombinePerKey(s, addInt64, sample))
}

// salts are the hot accounts.
type salts map[site.Address]salted

// A salted account has n salts.
type salted struct{ n, seed uint64 }

// read reads the side input, once in the life of a DoFn.
func (s *salts) read(hot func(*[]byte) bool) {
	if *s != nil {
		return
	}
	*s = salts{}
	var value []byte
	for hot(&value) {
		d := wire.Decode(value)
		(*s)[d.Address()] = salted{n: d.Uvarint(), seed: d.Uvarint()}
	}
}

// count returns the number of salts of an account.
func (s salts) count(a site.Address) uint64 { return max(1, s[a].n) }

// key returns the key for values from other about an account.
func (s salts) key(a site.Address, other []byte) string {
	hot := s[a]
	if hot.n <= 1 {
		return wire.AddressKey(a)
	}
	return saltedKey(a, hashOf(hot.seed, other)%hot.n)
}

// all yields all keys of an account.
func (s salts) all(a site.Address, yield func(salt uint64, key string)) {
	n := s.count(a)
	if n == 1 {
		yield(0, wire.AddressKey(a))
		return
	}
	for salt := range n {
		yield(salt, saltedKey(a, salt))
	}
}

func saltedKey(a site.Address, salt uint64) string {
	return wire.AddressKey(a) + strconv.FormatUint(salt, 10)
}
