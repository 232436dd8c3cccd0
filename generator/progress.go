package generator

// Progress is told how far a run has come. Its methods are called from many goroutines.
type Progress interface {
	// Stage begins a part of the run. total is the sum of n over all calls of AddBytes in this
	// stage, or 0 if it is not known.
	Stage(name string, total int64)
	// AddBytes says that n more items are done, with so many bytes: those of files that were
	// read, as they are stored, or of objects that were rendered.
	AddBytes(n, bytes int64)
}

type noProgress struct{}

func (noProgress) Stage(string, int64)   {}
func (noProgress) AddBytes(int64, int64) {}
