package site

// Inputs says what a site was made of, so that others can make it again and compare. Members that are facts of chains
// can be checked against those; what services told of profiles and badges is input as it is.
type Inputs struct {
	Generator string `json:"generator"` // version of followpress
	// Tables has a digest of each table of the snapshot that was read, by its name: see snapshot.Digest. It is that of
	// the rows in canonical form, in their order, whatever files have them.
	Tables    map[string]SHA256 `json:"tables"`
	ListOps   *uint64           `json:"list_ops,omitempty"`  // of the snapshot's meta.json
	OpsFrom   string            `json:"ops_from,omitempty"`  // of the snapshot's meta.json
	Chains    []ChainInput      `json:"chains,omitempty"`    // by ID; none if the snapshot does not say
	Profiles  *ServiceInput     `json:"profiles,omitempty"`  // nil if the snapshot does not say
	Badges    *ServiceInput     `json:"badges,omitempty"`    // nil if the snapshot does not say
	Refreshed *SHA256           `json:"refreshed,omitempty"` // of what refreshes kept, if it was merged
	Ranks     *SHA256           `json:"ranks,omitempty"`     // of the _ranks of an earlier site, if they were used
}

// A ChainInput is the block up to which the events of a chain were read.
type ChainInput struct {
	ChainID uint64  `json:"chain_id"`
	Block   uint64  `json:"block"`
	Hash    string  `json:"hash"`          // of the block, 0x and 64 hexadecimal digits
	Events  uint64  `json:"events"`        // of all contracts, up to the block
	Log     *SHA256 `json:"log,omitempty"` // the last link of the log's bundles, where it is published
}

// A ServiceInput is what a service told of accounts.
type ServiceInput struct {
	Source string `json:"source"`          // its URL without user, query and fragment: secrets may be in those
	From   string `json:"from,omitempty"`  // time of the oldest answer, RFC 3339
	Until  string `json:"until,omitempty"` // time of the newest answer, RFC 3339
	Digest SHA256 `json:"digest"`          // of the answers that were used, by account
}
