package dumplog

import (
	"cmp"
	"slices"
	"time"
)

// Life is one run of a proposing member's process, from start to exit, as its request IDs show it. etcd's ID generator
// puts the start time of the process into every ID and never runs ahead of the clock (pkg/idutil/id.go, etcd 3.0 to
// 3.8).
type Life struct {
	// Prefix is the low 16 bits of the proposer's member ID. Members are the known members with this prefix: if more
	// than one, the proposer is ambiguous; if none, it is unknown.
	Prefix  uint16
	Members []ID
	// First and Last are the first and last index that the process proposed, Requests their number.
	First, Last uint64
	Requests    int
	// FirstID and LastID are the lowest and the highest request ID. The time in FirstID is the start of the process,
	// plus one millisecond per 256 requests it made before.
	FirstID, LastID RequestID
	// Publish is the index of the entry in which the member published its attributes, as it does once after each start;
	// 0 if the log has none.
	Publish uint64
	// Inferred is true if only a jump of the IDs distinguishes this run from the previous one.
	Inferred bool
	// Name is the published member name.
	Name string
}

// Start returns when the process started. If its first requests are not in the log, the time is slightly later than the
// start.
func (l *Life) Start(near time.Time) time.Time { return l.FirstID.StartTime(near) }

// A restart without a publish is inferred from the IDs. A new generator starts with a counter of 0 and a start time
// that is at least restartMillis ahead. A process whose requests are missing from the log, 256 per millisecond of the
// jump, would look the same; so the result is marked Inferred.
const (
	restartMillis  = 1000
	restartCounter = 64
)

// Bounds of what is kept. An entry can belong to the newest runs of a proposer only: requests of earlier ones were
// committed long ago.
const (
	maxOpen       = 1000
	maxLives      = 100_000 // of all proposers
	maxSamePrefix = 16      // members with one prefix
)

// Lives collects the process runs of all proposers of a log, up to 100,000. Entries must come in physical order. The
// zero value is ready.
type Lives struct {
	lives    map[uint16][]*Life
	members  map[uint16][]ID
	runs     int
	unlisted int
}

// Unlisted is the number of requests that belong to none of the runs, because there were too many before.
func (l *Lives) Unlisted() int { return l.unlisted }

// AddMember adds known member IDs, so that runs can name their proposer. Members that the log adds or publishes are
// known without it.
func (l *Lives) AddMember(ids ...ID) {
	if l.members == nil {
		l.members = map[uint16][]ID{}
	}
	for _, id := range ids {
		same := l.members[uint16(id)]
		if at, found := slices.BinarySearch(same, id); !found && len(same) < maxSamePrefix {
			l.members[uint16(id)] = slices.Insert(same, at, id)
		}
	}
}

// Add adds the next entry.
func (l *Lives) Add(e *Entry, r *Request) {
	attr := r.Publishes()
	if attr != nil {
		l.AddMember(attr.MemberID)
	}
	if r.ConfChange != nil && r.ConfChange.NodeID != 0 {
		l.AddMember(r.ConfChange.NodeID)
	}
	id := r.ProposerID()
	if id == 0 {
		return
	}
	life := l.find(id, attr != nil && id.Proposed(attr.MemberID))
	if life == nil {
		l.unlisted++
		return
	}
	life.Requests++
	if life.First == 0 {
		life.First = e.Index
	}
	life.Last = e.Index
	life.FirstID, life.LastID = min(life.FirstID, id), max(life.LastID, id)
	if attr != nil && life.Publish == 0 {
		life.Publish, life.Name = e.Index, attr.Name
	}
}

// Publishes returns the attributes that the request publishes, in the form of 3.6 or of earlier versions; nil for any
// other request. Every etcd publishes once after its start.
func (r *Request) Publishes() *ClusterMemberAttrSet {
	if r.MemberAttr != nil {
		return r.MemberAttr
	}
	if r.V2 != nil {
		if a, ok := r.V2.MemberAttr(); ok {
			return &a
		}
	}
	return nil
}

// find returns the run that an ID belongs to. Requests of one process are not committed strictly in ID order, so an ID
// belongs to the newest run that started before it. It returns nil if that is one too many.
func (l *Lives) find(id RequestID, publish bool) *Life {
	p := id.ProposerPrefix()
	list := l.lives[p]
	for i := len(list) - 1; i >= max(0, len(list)-maxOpen); i-- {
		life := list[i]
		if id < life.FirstID && (i > 0 || life.FirstID.StartMillis()-id.StartMillis() > restartMillis) {
			continue
		}
		if i < len(list)-1 {
			return life
		}
		jump := int64(id.StartMillis()) - int64(life.LastID.StartMillis())
		again := publish && life.Publish != 0
		if again || jump > restartMillis && id.Counter() <= restartCounter {
			break
		}
		return life
	}
	if l.runs == maxLives {
		return nil
	}
	l.runs++
	life := &Life{Prefix: p, FirstID: id, LastID: id, Inferred: len(list) > 0 && !publish}
	if l.lives == nil {
		l.lives = map[uint16][]*Life{}
	}
	l.lives[p] = append(list, life)
	return life
}

// List returns the runs by first index, with the matching members filled in.
func (l *Lives) List() []Life {
	var all []Life
	for prefix, list := range l.lives {
		for _, life := range list {
			c := *life
			c.Members = l.members[prefix]
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Life) int {
		return cmp.Or(cmp.Compare(a.First, b.First),
			cmp.Compare(a.FirstID, b.FirstID))
	})
	return all
}
