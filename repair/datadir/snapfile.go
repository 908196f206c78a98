package datadir

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"time"
)

// v2Node is a node of etcd's v2 store in JSON (server/etcdserver/api/v2store/node.go). Children is nil for a value.
type v2Node struct {
	Path                        string
	CreatedIndex, ModifiedIndex uint64
	ExpireTime                  time.Time
	Value                       string
	Children                    map[string]*v2Node
}

// v2Store is the part of the v2 store's JSON from which a server recovers. The watch history is empty, as in a new
// store.
type v2Store struct {
	Root           *v2Node
	CurrentIndex   uint64
	CurrentVersion int
}

// set creates path with its parents; an empty dir if value is nil.
func (s *v2Store) set(value *string, parts ...string) {
	n, path := s.Root, ""
	for i, p := range parts {
		path += "/" + p
		child := n.Children[p]
		if child == nil {
			child = &v2Node{Path: path, CreatedIndex: s.CurrentIndex, ModifiedIndex: s.CurrentIndex}
			if i < len(parts)-1 || value == nil {
				child.Children = map[string]*v2Node{}
			} else {
				child.Value = *value
			}
			n.Children[p] = child
		}
		n = child
	}
}

// raftAttributes and attributes are the two halves of membership.Member in the v2 store; in bucket members they are one
// object.
type raftAttributes struct {
	PeerURLs  []string `json:"peerURLs"`
	IsLearner bool     `json:"isLearner,omitempty"`
}

type attributes struct {
	Name       string   `json:"name,omitempty"`
	ClientURLs []string `json:"clientURLs,omitempty"`
}

type bucketMember struct {
	ID uint64 `json:"id"`
	raftAttributes
	attributes
}

// JSON returns the member as in bucket members and in the context of a bootstrap ConfChange.
func (m *Member) JSON() ([]byte, error) {
	return json.Marshal(bucketMember{m.ID, raftAttributes{m.PeerURLs, m.IsLearner}, attributes{m.Name, m.ClientURLs}})
}

// v2JSON returns the membership as servers up to 3.6 read it from a .snap file.
func v2JSON(d *Dir) ([]byte, error) {
	s := &v2Store{Root: &v2Node{Path: "/", Children: map[string]*v2Node{}}, CurrentVersion: 2}
	s.set(nil, "0")
	s.set(nil, "1")
	members := slices.Clone(d.Members)
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	for _, m := range members {
		id := fmt.Sprintf("%x", m.ID)
		s.CurrentIndex++
		if err := s.setJSON(raftAttributes{m.PeerURLs, m.IsLearner}, "0", "members", id, "raftAttributes"); err != nil {
			return nil, err
		}
		// A member that never started has no attributes: with an empty name, peers would think that it had started.
		if m.Name == "" && len(m.ClientURLs) == 0 {
			continue
		}
		s.CurrentIndex++
		if err := s.setJSON(attributes{m.Name, m.ClientURLs}, "0", "members", id, "attributes"); err != nil {
			return nil, err
		}
	}
	for _, id := range d.Removed {
		s.CurrentIndex++
		s.set(new(string), "0", "removed_members", fmt.Sprintf("%x", id))
	}
	if d.ClusterVersion != "" {
		s.CurrentIndex++
		s.set(&d.ClusterVersion, "0", "version")
	}
	return json.Marshal(s)
}

func (s *v2Store) setJSON(v any, parts ...string) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text := string(b)
	s.set(&text, parts...)
	return nil
}

// snapFile returns the content of <term>-<index>.snap.
func snapFile(d *Dir) ([]byte, error) {
	data := d.V2Store
	if data == nil {
		var err error
		if data, err = v2JSON(d); err != nil {
			return nil, err
		}
	}
	meta := num(num(raw(nil, 1, confState(d.Voters, d.Learners)), 2, d.Index), 3, d.Term)
	return SnapFile(data, meta), nil
}

// SnapFile returns the content of a .snap file: snappb.Snapshot around raftpb.Snapshot with data (the JSON of the v2
// store) and metadata (a marshaled raftpb.SnapshotMetadata).
func SnapFile(data, metadata []byte) []byte {
	snap := raw(raw(nil, 1, data), 2, metadata)
	return raw(num(nil, 1, uint64(crc32.Checksum(snap, castagnoli))), 2, snap)
}
