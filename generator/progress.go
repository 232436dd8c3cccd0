package generator

// Progress hears how far a run is. Its methods are called from many goroutines.
type Progress interface {
	// Stage begins a part of the run. total is what Add will add up to, 0 if
	// that is not known.
	Stage(name string, total int64)
	// Add says that n more are done.
	Add(n int64)
}

// noProgress is for callers who do not want to know.
type noProgress struct{}

func (noProgress) Stage(string, int64) {}
func (noProgress) Add(int64)           {}
