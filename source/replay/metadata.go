package replay

import (
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// The metadata keys used here. The key of a manager, who may write to a slot, is in no snapshot.
const (
	keyUser        = "user"
	keyManager     = "manager"
	keyPrimaryList = "primary-list"
)

// The encoding of a location: version, type, chain ID, contract, slot.
const (
	locationVersion = 1
	locationType    = 1

	atChain        = 2
	atContract     = atChain + len(source.Word{})
	atSlot         = atContract + len(site.Address{})
	locationLength = atSlot + len(source.Word{})
)

// ParseLocation returns the place that a location names. A list whose location is rejected with a
// Reason has no user and no records. ParseLocation does not check whether the contract is part of
// the deployment.
func ParseLocation(location []byte) (source.Place, Reason) {
	switch {
	case len(location) != locationLength:
		return source.Place{}, LocationLength
	case location[0] != locationVersion:
		return source.Place{}, LocationVersion
	case location[1] != locationType:
		return source.Place{}, LocationType
	}
	chain, ok := source.Word(location[atChain:atContract]).Uint64()
	if !ok {
		return source.Place{}, LocationPlace
	}
	return source.Place{
		Contract: source.Contract{Chain: chain, Address: site.Address(location[atContract:atSlot])},
		Slot:     source.Word(location[atSlot:]),
	}, ""
}

// User returns the user that a metadata value of a slot sets. Values that are not 20 bytes long,
// and the zero address, unset the user.
func User(value []byte) (user site.Address, ok bool) {
	if len(value) != len(user) {
		return site.Address{}, false
	}
	user = site.Address(value)
	return user, user != site.Address{}
}

// PrimaryList returns the token ID that an account names as its primary list, as a decimal. Values
// that are not 32 bytes long name none.
func PrimaryList(value []byte) (tokenID string, ok bool) {
	token, ok := primary(value)
	if !ok {
		return "", false
	}
	return token.Decimal(), true
}

func primary(value []byte) (token source.Word, ok bool) {
	if len(value) != len(token) {
		return source.Word{}, false
	}
	return source.Word(value), true
}
