package dumplog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// MaxV2Nodes bounds the nodes of the v2 stores that are kept of one snap folder. Servers write more than 100 bytes for
// each node, and v2 clusters had some 10,000.
const MaxV2Nodes = 1_000_000

// nodeBytes is how long the path of a user key and the attributes of a member may be on average.
const nodeBytes = 50

// v2Room is what may still be kept of v2 stores: nodes, and bytes of paths and attributes.
type v2Room struct{ nodes, bytes int }

func newV2Room(nodes int) *v2Room { return &v2Room{nodes, nodes * nodeBytes} }

// takes reports whether there is room for so many bytes.
func (r *v2Room) takes(n int) bool {
	r.bytes -= n
	return r.bytes >= 0
}

// errV2Large is the error of a v2 store that was not examined.
var errV2Large = errors.New("larger than any that a server writes, so it is not examined")

// v2Node is a node of the v2 store's JSON (server/etcdserver/api/v2store/node.go).
type v2Node struct {
	Value         string
	ModifiedIndex uint64
	Children      map[string]*v2Node
}

// v2Event is a change in the history of the store's watchers, of the last 1,000 (event_history.go, event.go there). It
// has no value where a folder was made or a key deleted.
type v2Event struct {
	Node struct {
		Key           string
		Value         *string
		ModifiedIndex uint64
	}
}

// v2History are the events of a WatcherHub. One of another form is none: the nodes are read without it.
type v2History struct{ events []*v2Event }

// UnmarshalJSON fails only where the JSON itself is wrong, which the caller finds before.
func (h *v2History) UnmarshalJSON(b []byte) error {
	var hub struct {
		EventHistory struct{ Queue struct{ Events []*v2Event } }
	}
	if json.Unmarshal(b, &hub) == nil {
		h.events = hub.EventHistory.Queue.Events
	}
	return nil
}

// v2Decoding is locked while the nodes of a v2 store are in memory, where they take up to thirty times its bytes.
var v2Decoding sync.Mutex

// decodeV2Store reads the v2 store JSON of a .snap file: members, removed members and cluster version under /0, user
// content under /1. It compares the first with the history in WatcherHub, and ignores Stats and the indexes, which
// differ between equal members.
func decodeV2Store(b []byte, room *v2Room) (*V2Store, error) {
	v := &V2Store{Bytes: len(b)}
	n := objects(b)
	if n > room.nodes {
		return v, fmt.Errorf("%w: it has %d nodes", errV2Large, n)
	}
	room.nodes -= n
	v2Decoding.Lock()
	defer v2Decoding.Unlock()
	var root struct {
		Root       *v2Node
		WatcherHub v2History
	}
	if err := json.Unmarshal(b, &root); err != nil {
		return v, err
	}
	if root.Root == nil {
		return v, errors.New("the v2 store has no root node")
	}
	cluster := root.Root.child("0")
	var bad error
	for hex, n := range cluster.child("members").children() {
		m, err := v2Member(hex, n, room)
		bad = cmp.Or(bad, err)
		v.Members = append(v.Members, m)
	}
	for hex := range cluster.child("removed_members").children() {
		id, err := ParseID(hex)
		bad = cmp.Or(bad, err)
		v.Removed = append(v.Removed, id)
	}
	if n := cluster.child("version"); n != nil {
		v.Version = n.Value
	}
	v.compareEvents(cluster, root.WatcherHub.events, room)
	for name, n := range root.Root.child("1").children() {
		v.UserKeys = n.leaves(v.UserKeys, []byte("/1/"+name), room)
	}
	if room.bytes < 0 {
		return &V2Store{Bytes: len(b)}, fmt.Errorf("%w: the paths of its keys are too long", errV2Large)
	}
	slices.SortFunc(v.Members, func(a, b V2Member) int { return cmp.Compare(a.ID, b.ID) })
	slices.Sort(v.Removed)
	slices.Sort(v.UserKeys)
	return v, bad
}

// compareEvents compares the nodes of the members and of the version with the events that wrote them: both have the
// store's index of that write.
func (v *V2Store) compareEvents(cluster *v2Node, events []*v2Event, room *v2Room) {
	type write struct {
		key   string
		index uint64
	}
	written := map[write]string{}
	for _, e := range events {
		if e != nil && e.Node.Value != nil && strings.HasPrefix(e.Node.Key, "/0/") {
			written[write{e.Node.Key, e.Node.ModifiedIndex}] = *e.Node.Value
		}
	}
	compare := func(key string, n *v2Node) {
		if n == nil {
			return
		}
		value, ok := written[write{key, n.ModifiedIndex}]
		if ok {
			v.InHistory++
		}
		if ok && value != n.Value && room.takes(len(value)+len(n.Value)) {
			v.Altered = append(v.Altered, V2Altered{Path: key, Index: n.ModifiedIndex, Value: n.Value, Written: value})
		}
	}
	for hex, n := range cluster.child("members").children() {
		for _, name := range []string{"attributes", "raftAttributes"} {
			compare("/0/members/"+hex+"/"+name, n.child(name))
		}
	}
	compare("/0/version", cluster.child("version"))
	slices.SortFunc(v.Altered, func(a, b V2Altered) int { return cmp.Compare(a.Path, b.Path) })
}

func v2Member(hex string, n *v2Node, room *v2Room) (m V2Member, err error) {
	if m.ID, err = ParseID(hex); err != nil {
		return m, err
	}
	if a := n.child("raftAttributes"); a != nil && room.takes(len(a.Value)) {
		var v struct {
			PeerURLs  []string `json:"peerURLs"`
			IsLearner bool     `json:"isLearner"`
		}
		err = json.Unmarshal([]byte(a.Value), &v)
		m.PeerURLs, m.IsLearner = v.PeerURLs, v.IsLearner
	}
	if a := n.child("attributes"); a != nil && room.takes(len(a.Value)) {
		var v struct {
			Name       string   `json:"name"`
			ClientURLs []string `json:"clientURLs"`
		}
		err = errors.Join(err, json.Unmarshal([]byte(a.Value), &v))
		m.Name, m.ClientURLs = v.Name, v.ClientURLs
	}
	return m, err
}

func (n *v2Node) children() map[string]*v2Node {
	if n == nil {
		return nil
	}
	return n.Children
}

// child finds a child by its last path element: the JSON keys of older versions are full paths. Of several, the one
// with the bare name counts, then the first by its path.
func (n *v2Node) child(name string) *v2Node {
	if c, ok := n.children()[name]; ok {
		return c
	}
	var found string
	for k := range n.children() {
		if strings.HasSuffix(k, "/"+name) && (found == "" || k < found) {
			found = k
		}
	}
	return n.children()[found]
}

// leaves collects the paths of all keys below n, as far as there is room; an empty directory counts as one.
func (n *v2Node) leaves(to []string, path []byte, room *v2Room) []string {
	if room.bytes < 0 {
		return to
	}
	if len(n.children()) == 0 {
		if !room.takes(len(path)) {
			return to
		}
		return append(to, string(path))
	}
	for name, c := range n.Children {
		to = c.leaves(to, append(append(path, '/'), name...), room)
	}
	return to
}

// objects counts the objects in a JSON text, without those inside of strings.
func objects(b []byte) (n int) {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{':
			n++
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}
