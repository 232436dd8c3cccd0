package snapshot_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// A graph of one's own: alice, whose primary list is 1, follows bob.
func ExampleCreate() {
	parent, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "snapshot")
	w, err := snapshot.Create(dir, snapshot.WriteOptions{Compression: "none"})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	alice, bob := site.Address{18: 0x0a, 19: 0x11}, site.Address{18: 0x0b, 19: 0x0b}
	if err := errors.Join(
		w.WriteAccount(snapshot.Account{Address: alice, Primary: "1", ENS: &site.Profile{Name: "alice.eth"}}),
		w.WriteList(snapshot.List{TokenID: "1", Owner: alice}),
		w.WriteRecord(snapshot.Record{TokenID: "1", Version: 1, Type: "address", Data: bob[:], Tags: []string{"friend"}, Added: snapshot.NoTime}),
	); err != nil {
		panic(err)
	}
	if err := w.Commit(snapshot.Meta{AsOf: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}); err != nil {
		panic(err)
	}
	for _, name := range []string{"accounts", "lists", "records"} {
		text, err := os.ReadFile(filepath.Join(dir, name+".ndjson"))
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s", name, text)
	}
	// Output:
	// accounts: {"address":"0x0000000000000000000000000000000000000a11","primary_list":"1","ens":{"name":"alice.eth","avatar":"","header":"","display":"","records":{},"chains":{},"fresh":0,"resolver":"","errors":{}}}
	// lists: {"token_id":"1","owner":"0x0000000000000000000000000000000000000a11"}
	// records: {"token_id":"1","version":1,"record_type":"address","data":"0x0000000000000000000000000000000000000b0b","tags":["friend"]}
}

func ExampleAccounts() {
	folder, err := snapshot.Open("../fixtures/demo")
	if err != nil {
		panic(err)
	}
	defer folder.Close()
	for account, err := range snapshot.Accounts(folder) {
		if err != nil {
			panic(err)
		}
		fmt.Println(account.Address, account.ENS.Name)
		if account.Primary == "9" {
			break
		}
	}
	// Output:
	// 0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd miralund.eth
	// 0xefe670ab712731d564711f2e3096e5186fced3a7 tobi-okafor.eth
	// 0x7b3632a747db89ecd4f830f6e120c96784a163df hanneke.eth
}
