// Package chain reads the events of contracts from the nodes of chains, and keeps them in a folder,
// so that the next run reads only new blocks.
package chain

import (
	_ "github.com/ethereum/go-ethereum/accounts/abi"
	_ "github.com/ethereum/go-ethereum/ethclient"
	_ "github.com/ethereum/go-ethereum/rpc"
)
