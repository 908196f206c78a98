package plan

// Cost is an estimate of room and time for a procedure, based on the sizes of the files.
type Cost struct {
	// CopyBytes are written and sent in all. FreeBytes must be free in the output and scratch folders. A live repair
	// needs FreeBytes on the host of each member that is replaced, in addition to the old data dir.
	CopyBytes int64 `json:"copyBytes"`
	FreeBytes int64 `json:"freeBytes"`
	// Seconds is an estimate for disks and networks of 100 MiB/s.
	Seconds int64 `json:"seconds"`
}

const (
	// WALRoom is what a server allocates for a log: the segment it writes and the next one.
	WALRoom = 128 << 20
	// bytesPerSecond is the assumed speed of disks and networks.
	bytesPerSecond = 100 << 20
	// secondsPerStart is the assumed time in which a server starts, finds its leader and serves.
	secondsPerStart = 5
)

// CloneNeeds is the room that new data dirs for n members take, with the copies that prove them.
func CloneNeeds(n int, db int64) int64 { return int64(n) * (2*db + WALRoom) }

// SandboxNeeds is the room that copies of all data dirs take, with a backup and the successors of the members that come
// back empty.
func SandboxNeeds(sources, db int64, rejoin int) int64 {
	return sources + db + int64(rejoin)*(2*db+WALRoom)
}

// costs estimates a possible procedure.
func (pr *procedures) costs(w *Way) *Cost {
	if !w.Possible || w.Mode == Restore {
		return nil
	}
	db, sources := int64(0), int64(0)
	if pr.best.DB != nil {
		db = pr.best.DB.Size
	}
	for i := range pr.p.Members {
		if m := &pr.p.Members[i]; m.Startable {
			for _, s := range pr.p.Sources {
				if s.Name == m.Source {
					sources += s.Bytes
				}
			}
		}
	}
	rejoin, starts := 0, int64(0)
	for i := range pr.p.Members {
		if pr.p.Members[i].Rejoins() {
			rejoin++
		}
	}
	for i := range w.Steps {
		switch w.Steps[i].Kind {
		case StepStart, StepStartEmpty, StepForceNew, StepHandOut:
			starts++
		}
	}
	c := &Cost{}
	switch w.Mode {
	case Clone, Rebuild:
		n := len(pr.p.CloneTargets())
		c.CopyBytes, c.FreeBytes, starts = 3*int64(n)*db, CloneNeeds(n, db), starts+int64(n)
	case Reseed:
		c.CopyBytes, c.FreeBytes = 2*sources+int64(rejoin)*db, SandboxNeeds(sources, db, rejoin)
		starts += int64(len(pr.p.Members) + rejoin)
	default:
		c.CopyBytes, c.FreeBytes = int64(1+rejoin)*db, db+WALRoom
	}
	c.Seconds = (c.CopyBytes+bytesPerSecond-1)/bytesPerSecond + starts*secondsPerStart
	return c
}
