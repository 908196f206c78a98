package dumplog

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// v2Node is a node of the v2 store's JSON (server/etcdserver/api/v2store/node.go).
type v2Node struct {
	Value    string
	Children map[string]*v2Node
}

// decodeV2Store reads the v2 store JSON of a .snap file: members, removed members and cluster version under /0, user
// content under /1. It ignores WatcherHub, Stats and the indexes, which differ between equal members.
func decodeV2Store(b []byte) (*V2Store, error) {
	v := &V2Store{Bytes: len(b)}
	var root struct{ Root *v2Node }
	if err := json.Unmarshal(b, &root); err != nil {
		return v, err
	}
	if root.Root == nil {
		return v, errors.New("the v2 store has no root node")
	}
	cluster := root.Root.child("0")
	var bad error
	for hex, n := range cluster.child("members").children() {
		m, err := v2Member(hex, n)
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
	for name, n := range root.Root.child("1").children() {
		v.UserKeys = n.leaves(v.UserKeys, "/1/"+name)
	}
	slices.SortFunc(v.Members, func(a, b V2Member) int { return cmp.Compare(a.ID, b.ID) })
	slices.Sort(v.Removed)
	slices.Sort(v.UserKeys)
	return v, bad
}

func v2Member(hex string, n *v2Node) (m V2Member, err error) {
	if m.ID, err = ParseID(hex); err != nil {
		return m, err
	}
	if a := n.child("raftAttributes"); a != nil {
		var v struct {
			PeerURLs  []string `json:"peerURLs"`
			IsLearner bool     `json:"isLearner"`
		}
		err = json.Unmarshal([]byte(a.Value), &v)
		m.PeerURLs, m.IsLearner = v.PeerURLs, v.IsLearner
	}
	if a := n.child("attributes"); a != nil {
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

// leaves collects the paths of all keys below n; an empty directory counts as one.
func (n *v2Node) leaves(to []string, path string) []string {
	if len(n.children()) == 0 {
		return append(to, path)
	}
	for name, c := range n.Children {
		to = c.leaves(to, path+"/"+name)
	}
	return to
}
