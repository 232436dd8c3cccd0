package source_test

import (
	"math/big"
	"testing"

	"github.com/followpress/followpress/source"
)

func TestDecimal(t *testing.T) {
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)).String()
	for text, want := range map[string]source.Word{
		"0":                    {},
		"255":                  {31: 255},
		"256":                  {30: 1},
		"18446744073709551616": {23: 1},
	} {
		if got := want.Decimal(); got != text {
			t.Errorf("Decimal of %s: got %s, want %s", want, got, text)
		}
		if got, err := source.ParseDecimal(text); err != nil || got != want {
			t.Errorf("ParseDecimal(%q): got %s, %v, want %s", text, got, err, want)
		}
	}
	if w, err := source.ParseDecimal(most); err != nil || w.Decimal() != most {
		t.Errorf("ParseDecimal(%q): got %s, %v", most, w, err)
	}
	tooLarge := new(big.Int).Lsh(big.NewInt(1), 256).String()
	for _, text := range []string{"", "01", "-1", "+1", "1.0", "0x1", "1e3", tooLarge} {
		if w, err := source.ParseDecimal(text); err == nil {
			t.Errorf("ParseDecimal(%q): got %s, want an error", text, w)
		}
	}
}
