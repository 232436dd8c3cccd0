package compute

import "time"

// Add appends byte strings to the body.
func (a *Answer) Add(text ...[]byte) error {
	n := 0
	for _, t := range text {
		n += len(t)
	}
	if err := a.Grow(n); err != nil {
		return err
	}
	for _, t := range text {
		a.Body = append(a.Body, t...)
	}
	return nil
}

// AddText appends a string to the body.
func (a *Answer) AddText(text string) error {
	if err := a.Grow(len(text)); err != nil {
		return err
	}
	a.Body = append(a.Body, text...)
	return nil
}

// Write appends to the body. It lets encoders write to an Answer.
func (a *Answer) Write(text []byte) (int, error) {
	if err := a.Add(text); err != nil {
		return 0, err
	}
	return len(text), nil
}

// EntrySpare exceeds the bytes of an entry apart from its strings.
const EntrySpare = 512

// AddEntry appends an entry to a list in the body. textBytes is the total length of its strings.
func (a *Answer) AddEntry(first bool, textBytes int, render func(b []byte) []byte) error {
	if err := a.Grow(textBytes + EntrySpare); err != nil {
		return err
	}
	if !first {
		a.Body = append(a.Body, ',')
	}
	a.Body = render(a.Body)
	return nil
}

// AppendMillis appends a time, given in milliseconds since the Unix epoch, as a quoted JSON string.
func AppendMillis(b []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(b, `"2006-01-02T15:04:05.000Z"`)
}

// NullIfEmpty returns null for an empty JSON string.
func NullIfEmpty(text []byte) []byte {
	if string(text) == `""` {
		return []byte("null")
	}
	return text
}
