package source

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

func address(t *testing.T, text string) site.Address {
	t.Helper()
	a, err := site.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestProduction(t *testing.T) {
	d := Production()
	shared := address(t, "0x5289fe5dabc021d02fddf23d4a4df96f4e0f17ef")
	if got, want := d.Registry(), (Contract{8453, address(t, "0x0e688f5dca4a0a4729946acbc44c792341714e08")}); got != want {
		t.Errorf("registry: got %v, want %v", got, want)
	}
	if got, want := d.Accounts(), (Contract{8453, shared}); got != want {
		t.Errorf("account metadata: got %v, want %v", got, want)
	}
	for contract, want := range map[Contract]bool{
		{1, shared}:    true,
		{8453, shared}: false, // account metadata there
		{8453, address(t, "0x41aa48ef3c0446b46a5b1cc6337ff3d3716e2a33")}: true,
		{10, address(t, "0x4ca00413d850dcfa3516e14d21dae2772f2acb85")}:   true,
	} {
		got := slices.ContainsFunc(d.Chains, func(c Chain) bool {
			return c.ID == contract.Chain && slices.ContainsFunc(c.Records, func(s Start) bool { return s.Address == contract.Address })
		})
		if got != want {
			t.Errorf("%d:%s has records: got %v, want %v", contract.Chain, contract.Address, got, want)
		}
	}
}

func TestExampleDeployment(t *testing.T) {
	text, err := os.ReadFile("../docs/deployments/base-sepolia.json")
	if err != nil {
		t.Fatal(err)
	}
	d, err := ParseDeployment(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Chains) != 3 || len(d.Chains[2].Records) != 2 || d.Chains[2].Records[1].FirstBlock != 7737234 {
		t.Errorf("got %+v", d)
	}
}

func TestDeploymentsThatAreRefused(t *testing.T) {
	start := func(digit string) string {
		return `{"address":"0x` + strings.Repeat(digit, 40) + `","first_block":7}`
	}
	chain := func(id, members string) string { return `{"id":` + id + `,"name":"N",` + members + `}` }
	file := func(chains ...string) string { return `{"chains":[` + strings.Join(chains, ",") + `]}` }
	both := `"registry":` + start("1") + `,"account_metadata":` + start("2")
	full := chain("1", both+`,"records":[`+start("3")+`]`)
	if _, err := ParseDeployment([]byte(file(full))); err != nil {
		t.Fatal(err)
	}
	var many []string
	for id := range 64 {
		many = append(many, chain(strconv.Itoa(id+2), `"records":[`+start("4")+`]`))
	}
	for name, test := range map[string]struct{ text, want string }{
		"nothing":             {``, "deployment"},
		"no chains":           {`{}`, "0 chains have a registry"},
		"more":                {file(full) + `{}`, "trailing data"},
		"unknown member":      {file(chain("1", both+`,"record":[]`)), "unknown field"},
		"no registry":         {file(chain("1", `"account_metadata":`+start("2")+`,"records":[`+start("3")+`]`)), "0 chains have a registry"},
		"no account metadata": {file(chain("1", `"registry":`+start("2")+`,"records":[`+start("3")+`]`)), "0 chains have account_metadata"},
		"two registries":      {file(full, chain("2", `"registry":`+start("1"))), "2 chains have a registry"},
		"no records":          {file(chain("1", both)), "no chain has records"},
		"no contracts":        {file(full, chain("2", `"records":[]`)), "no contracts"},
		"too many chains":     {file(append(many, full)...), "65 chains, want at most 64"},
		"chain twice":         {file(full, chain("1", `"records":[`+start("4")+`]`)), "duplicate chain"},
		"address twice":       {file(chain("1", both+`,"records":[`+start("2")+`]`)), "another contract"},
		"id 0":                {file(chain("0", both)), "chain id"},
		"huge id":             {file(chain("9223372036854775808", both)), "chain id"},
		"no name":             {file(`{"id":1,"registry":` + start("1") + `}`), "name"},
		"short address":       {file(chain("1", `"registry":{"address":"0x12","first_block":1}`)), "not an address"},
		"zero address":        {file(chain("1", `"registry":`+start("0"))), "zero address"},
		"no first block":      {file(chain("1", `"registry":{"address":"0x`+strings.Repeat("1", 40)+`"}`)), "first_block"},
		"negative block":      {file(chain("1", `"registry":{"address":"0x`+strings.Repeat("1", 40)+`","first_block":-1}`)), "deployment"},
	} {
		if _, err := ParseDeployment([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, test.want)
		}
	}
}
