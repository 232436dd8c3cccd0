package render

import (
	"fmt"

	"github.com/followpress/followpress/internal/rawjson"
)

// AppendUserBucket appends the object that maps the users of a bucket to their primary lists. users
// must be sorted; tokenID returns the list of each, "" for none.
func AppendUserBucket(b []byte, bucket string, users []string, tokenID func(user string) string) []byte {
	b = appendBucket(b, bucket, "users")
	for _, user := range users {
		b = rawjson.AppendString(b, user)
		b = append(b, `:"`...)
		b = append(b, tokenID(user)...)
		b = append(b, `",`...)
	}
	return append(withoutComma(b), "}}"...)
}

// appendBucket appends the beginning of a bucket, up to the first entry of its first member.
func appendBucket(b []byte, name, member string) []byte {
	return fmt.Appendf(b, `{"bucket":"%s","%s":{`, name, member)
}
