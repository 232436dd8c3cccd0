package compute

// Rows holds copies of rows for a page. The gate of the answer counts their memory.
type Rows struct {
	text  []byte
	spans []span
	ended bool // another row would exceed the size limit of a page
}

type span struct{ from, to int }

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.spans) }

// Bytes returns the total length of the rows.
func (r *Rows) Bytes() int { return len(r.text) }

// At returns row i.
func (r *Rows) At(i int) []byte { return r.text[r.spans[i].from:r.spans[i].to] }

// IsFull reports whether a page of at most limit rows takes no more.
func (r *Rows) IsFull(limit int) bool { return r.ended || r.Len() == limit }

// Truncate keeps the first n rows.
func (r *Rows) Truncate(n int) { r.spans = r.spans[:n] }

// Copy appends a copy of a row, unless that would exceed the size limit of a page.
func (r *Rows) Copy(a *Answer, row []byte) error {
	if r.ended = r.ended || r.Len() > 0 && len(r.text)+len(row) > MostPageBytes; r.ended {
		return nil
	}
	if more := len(r.text) + len(row) - cap(r.text); more > 0 {
		more = max(more, cap(r.text), firstBytes)
		if err := a.Take(more); err != nil {
			return err
		}
		r.text = append(make([]byte, 0, cap(r.text)+more), r.text...)
	}
	r.spans = append(r.spans, span{len(r.text), len(r.text) + len(row)})
	r.text = append(r.text, row...)
	return nil
}

// AddRows appends begin, a list of entries, and end. For each row it calls parse, then render to
// append the entry.
func AddRows[R any](
	a *Answer, begin string, page *Rows, parse func(row []byte) (R, error), render func(b []byte, i int, r R) []byte, end string,
) error {
	if err := a.AddText(begin); err != nil {
		return err
	}
	for i := range page.Len() {
		r, err := parse(page.At(i))
		if err != nil {
			return err
		}
		if err := a.AddEntry(i == 0, len(page.At(i)), func(b []byte) []byte { return render(b, i, r) }); err != nil {
			return err
		}
	}
	return a.AddText(end)
}
