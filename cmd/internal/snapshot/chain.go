package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/chain/provider"
	"github.com/followpress/followpress/source/replay"
)

// Chain is the command that reads the chains.
type Chain struct {
	State string   `required:"" placeholder:"DIR" help:"Folder that keeps what was read, so that the next run reads only new blocks. If it is lost, all is read again."`
	RPC   []string `name:"rpc" sep:";" placeholder:"CHAIN=URL,URL" help:"Nodes of a chain, by its id: 8453=https://…,https://…; repeat it for each chain, or separate chains by semicolons. Set FOLLOWPRESS_RPC if a URL has a key: others can see the flags of a process."`

	Deployment  string  `placeholder:"FILE" help:"Where the contracts are, as JSON; by default those of the Ethereum Follow Protocol in production."`
	Finality    string  `enum:"finalized,safe,latest" default:"finalized" placeholder:"finalized|safe|latest" help:"The last block to read. After finalized there is no reorganisation (default ${default})."`
	Explain     string  `placeholder:"TOKEN" help:"Make no snapshot: show each event in the state that concerns this list, and what it did."`
	output
	requests `group:"How nodes are asked:"`
	profiles `group:"Profiles:"`
	tables   `group:"Badges and other tables:"`
}

type requests struct {
	Quorum      int     `default:"1" placeholder:"N" help:"How many URLs of a chain must agree on each answer (default ${default})."`
	Concurrency int     `default:"8" placeholder:"N" help:"Requests at a time to a URL (default ${default})."`
	Rate        float64 `default:"0" placeholder:"N" help:"Requests a second to a URL; 0 means any number."`
	MaxRange    uint64  `default:"10000" placeholder:"BLOCKS" help:"Blocks that one request asks about at most (default ${default}). Where a node wants fewer, that is found out."`
}

// Help is what --help shows below the first line.
func (*Chain) Help() string {
	return `It asks nodes for the events of the contracts, keeps them in the state, and replays them into lists, records and primary lists. A killed run goes on where it was. Nodes that lag, fail or disagree give an error, never a wrong snapshot.

	followpress snapshot chain --state state --rpc 8453=URL --rpc 10=URL --rpc 1=URL`
}
