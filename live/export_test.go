package live

import (
	"time"

	"github.com/followpress/followpress/source"
)

// SetWall replaces the clock of the machine.
func (l *Live) SetWall(now func() time.Time) { l.clock.wall = now }

// SetBegin makes the clock of the begin wrong.
func (l *Live) SetBegin(wrong time.Duration) { l.clock.started = l.clock.started.Add(wrong) }

// Head returns the head of a chain.
func (s Status) Head(chain uint64) source.Head {
	for _, c := range s.Chains {
		if c.Chain == chain {
			return source.Head{Chain: chain, Block: c.Block, Time: c.Time.UnixMilli(), Finalized: c.Finalized}
		}
	}
	return source.Head{}
}

// SetMostReplaced sets the bytes of replaced objects beyond which a new graph merges them.
func (l *Live) SetMostReplaced(bytes int64) { l.mostReplaced = bytes }
