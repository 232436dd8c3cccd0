package publisher

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A Digester is a bucket whose ETags may be something else than MD5s, as under SSE-KMS,
// and which can tell the MD5 of an object by itself.
type Digester interface {
	Digest(ctx context.Context, key site.Key) (site.MD5, error)
}

// A doubt is an entry that a listing neither confirms nor refutes: the size is right, and
// the ETag is not its MD5.
type doubt struct {
	entry  int  // of those expected
	fresh  bool // whether its headers are the right ones
	answer answer
}

// An answer says what has become of a doubt.
type answer int

const (
	gone answer = iota
	same
	other
)

// inDoubt reports whether an object may be what it should although its ETag is not.
func inDoubt(bucket *patient, want site.Entry, found storage.Info) bool {
	_, able := bucket.bucket.(Digester)
	return able && found.ETag != want.MD5.String() && (want.Size == anySize || want.Size == found.Size)
}

// settle asks for the digest of each object in doubt.
func (p *patient) settle(ctx context.Context, expected []site.Entry, doubts []doubt, progress Progress) error {
	if len(doubts) == 0 {
		return nil
	}
	progress.Stage("digests", int64(len(doubts)))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, p.atOnce))
	for i := range doubts {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() (err error) {
			doubts[i].answer, err = p.compare(groupCtx, expected[doubts[i].entry])
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
	for _, d := range doubts {
		if d.answer == same {
			n++
		}
	}
	if n > 0 {
		p.log.Warn("ETags of the bucket are no MD5s, as under SSE-KMS: asked for digests one by one", "objects", len(doubts), "right", n)
	}
	return nil
}

func (p *patient) compare(ctx context.Context, want site.Entry) (found answer, err error) {
	err = p.do(ctx, attemptTime, "head "+string(want.Key), func(ctx context.Context) error {
		digest, err := p.bucket.(Digester).Digest(ctx, want.Key)
		if err == nil && digest == want.MD5 {
			found = same
		} else if err == nil {
			found = other
		}
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		return gone, nil
	}
	return found, err
}
