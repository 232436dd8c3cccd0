package publisher

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A Digester is a bucket whose ETags may be something else than MD5s, as under SSE-KMS,
// and which can tell the MD5 of an object by itself.
type Digester interface {
	Digest(ctx context.Context, key site.Key) (site.MD5, error)
}

// A question is about an entry that a listing neither confirms nor refutes: the size is
// right, and the ETag is not its MD5.
type question struct {
	entry  int // of those expected
	info   storage.Info
	answer answer
}

// An answer says what an object is.
type answer int

const (
	gone answer = iota
	same
	other
)

// cannotTell reports whether an object may be what it should although its ETag is not.
func (p *patient) cannotTell(want site.Entry, found storage.Info) bool {
	_, able := p.bucket.(Digester)
	return able && !p.plain && found.ETag != want.MD5.String() && (want.Size == anySize || want.Size == found.Size)
}

// ask finds the answers, by the digest of each object.
func (p *patient) ask(ctx context.Context, expected []site.Entry, unsure []question, progress Progress) error {
	if len(unsure) == 0 {
		return nil
	}
	progress.Stage("digests", int64(len(unsure)))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, p.atOnce))
	for i := range unsure {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() (err error) {
			unsure[i].answer, err = p.compare(groupCtx, expected[unsure[i].entry])
			progress.AddBytes(1, 0)
			return err
		})
	}
	err := group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	} else if err != nil {
		return err
	}
	n := 0
	for _, q := range unsure {
		if q.answer == same {
			n++
		}
	}
	if n > 0 {
		p.log.Warn("ETags of the bucket are no MD5s, as under SSE-KMS: asked for digests one by one", "objects", len(unsure), "right", n)
	}
	return nil
}

func (p *patient) compare(ctx context.Context, want site.Entry) (answer, error) {
	digest, err := p.digest(ctx, want.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return gone, nil
	case digest == want.MD5:
		return same, err
	}
	return other, err
}

func (p *patient) digest(ctx context.Context, key site.Key) (digest site.MD5, err error) {
	err = p.do(ctx, attemptTime, "head "+string(key), func(ctx context.Context) (err error) {
		digest, err = p.bucket.(Digester).Digest(ctx, key)
		return err
	})
	return digest, err
}

// isOneOf reports whether an object that was listed has one of some digests.
func (p *patient) isOneOf(ctx context.Context, listed storage.Info, digests []site.MD5) (bool, error) {
	if slices.ContainsFunc(digests, func(d site.MD5) bool { return d.String() == listed.ETag }) {
		return true, nil
	}
	if len(digests) == 0 || !p.cannotTell(site.Entry{Size: anySize}, listed) {
		return false, nil
	}
	digest, err := p.digest(ctx, listed.Key)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return slices.Contains(digests, digest), err
}
