package site

import (
	"cmp"
	"strings"
)

// maxTokenIDDigits is the number of digits of 2^256-1, the largest token ID.
const maxTokenIDDigits = 78

// ValidTokenID reports whether text is a canonical decimal: at most maxTokenIDDigits digits, without leading zeros
// except for "0" itself.
func ValidTokenID(text string) bool {
	if text == "" || len(text) > maxTokenIDDigits || text[0] == '0' && len(text) > 1 {
		return false
	}
	return allDigits(text)
}

// CompareTokenIDs compares two canonical decimals numerically, like cmp.Compare.
func CompareTokenIDs(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func allDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}
