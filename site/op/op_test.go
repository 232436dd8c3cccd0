package op_test

import (
	"fmt"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
)

func TestParse(t *testing.T) {
	account := site.Address{0: 0xab, 19: 1}
	for _, test := range []struct {
		op   []byte
		want string
	}{
		{op.Append(nil, op.Follow, account, ""), "follow 1.address " + account.String()},
		{op.Append(nil, op.Unfollow, account, ""), "unfollow 1.address " + account.String()},
		{op.Append(nil, op.Tag, account, "é"), "tag 1.address " + account.String() + " é"},
		{op.Append(nil, op.Untag, account, "x"), "untag 1.address " + account.String() + " x"},
		{[]byte{1, 1, 1, 2, 7}, "follow 1.2 07"},
		{append([]byte{1, 1, 2, 1}, account[:]...), fmt.Sprintf("follow 2.1 %x", account[:])},
		{[]byte{1, 2, 255, 255, 7}, "unfollow 255.255 07"},
		{[]byte{1, 3, 2, 1, 7}, string(op.TagRecord)},
		{op.Append(nil, op.Follow, account, "x"), string(op.RecordLength)},
		{op.Append(nil, op.Tag, account, ""), string(op.TagEmpty)},
		{op.Append(nil, op.Untag, account, "\xff"), string(op.TagUTF8)},
		{op.Append(nil, 5, account, ""), string(op.UnknownCode)},
		{nil, string(op.Length)},
	} {
		o, ignored := op.Parse(test.op)
		got := string(ignored)
		if ignored == "" {
			got = fmt.Sprintf("%s %d.%s ", o.Code, o.Kind().Version, o.Kind().Type)
			if a, ok := o.Address(); ok {
				got += a.String()
			} else {
				got += fmt.Sprintf("%x", o.Data())
			}
			if len(o.Tag) > 0 {
				got += " " + string(o.Tag)
			}
		}
		if got != test.want {
			t.Errorf("%x: got %q, want %q", test.op, got, test.want)
		}
	}
}
