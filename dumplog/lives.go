package dumplog

import (
	"cmp"
	"slices"
	"time"
)

// Life is one process life of a proposing member, as its request IDs show it: etcd's ID generator puts the start time
// of the process into every ID and never runs ahead of the clock (pkg/idutil/id.go, etcd 3.0 to 3.8).
type Life struct {
	// Prefix is the low 16 bits of the proposer's member ID; Members are the known members that fit it. More than one
	// means that the proposer is ambiguous, none that it is not known.
	Prefix  uint16
	Members []ID
	// First and Last are the first and last index proposed in this life, Requests their number.
	First, Last uint64
	Requests    int
	// FirstID and LastID are the lowest and the highest request ID. The start of FirstID is the start of the process,
	// plus one millisecond per 256 requests it made before.
	FirstID, LastID RequestID
	// Publish is the index of the entry in which the member published its attributes, as it does once after each start;
	// 0 when the log has none.
	Publish uint64
	// Inferred is true when only a jump of the IDs tells this life from the one before.
	Inferred bool
	// Name is the name that was published.
	Name string
}

// Start returns when the process started, or shortly after when its first requests are not in the log.
func (l *Life) Start(near time.Time) time.Time { return l.FirstID.StartTime(near) }

// A restart that no publish marks is taken from the IDs: a new generator starts with a counter of 0 and a start time
// that is at least restartMillis ahead. A process that made 256 requests per millisecond of that jump without one of
// them being in the log would look the same; hence Inferred.
const (
	restartMillis  = 1000
	restartCounter = 64
)

// Lives collects the process lives of all proposers of a log. Entries must come in physical order. Its memory grows
// with the number of lives only. The zero value is ready.
type Lives struct {
	lives   map[uint16][]*Life
	members map[ID]bool
}

// AddMember makes a member ID known, so that lives can name their proposer. Members that the log itself adds or
// publishes are known without it.
func (l *Lives) AddMember(ids ...ID) {
	if l.members == nil {
		l.members = map[ID]bool{}
	}
	for _, id := range ids {
		l.members[id] = true
	}
}

// Add takes the next entry.
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

// Publishes returns the attributes that the request publishes, in the form of 3.6 or in that of earlier versions; nil
// when it is another request. Every etcd publishes once after it started.
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

// find returns the life an ID belongs to. IDs of one process are committed nearly, not strictly, in order, so an ID
// goes to the newest life that started before it.
func (l *Lives) find(id RequestID, publish bool) *Life {
	p := id.ProposerPrefix()
	list := l.lives[p]
	for i := len(list) - 1; i >= 0; i-- {
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
	life := &Life{Prefix: p, FirstID: id, LastID: id, Inferred: len(list) > 0 && !publish}
	if l.lives == nil {
		l.lives = map[uint16][]*Life{}
	}
	l.lives[p] = append(list, life)
	return life
}

// List returns the lives by first index, with the members that fit filled in.
func (l *Lives) List() []Life {
	var all []Life
	for _, list := range l.lives {
		for _, life := range list {
			c := *life
			for id := range l.members {
				if uint16(id) == c.Prefix {
					c.Members = append(c.Members, id)
				}
			}
			slices.Sort(c.Members)
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Life) int {
		return cmp.Or(cmp.Compare(a.First, b.First),
			cmp.Compare(a.FirstID, b.FirstID))
	})
	return all
}
