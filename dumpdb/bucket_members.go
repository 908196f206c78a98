package dumpdb

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// memberJSON is membership.Member as the server stores it. The ID is a number here and text elsewhere.
type memberJSON struct {
	ID         uint64   `json:"id"`
	PeerURLs   []string `json:"peerURLs"`
	IsLearner  bool     `json:"isLearner"`
	Name       string   `json:"name"`
	ClientURLs []string `json:"clientURLs"`
}

// Members reads bucket members, in ID order.
func (db *DB) Members() ([]Member, error) {
	var out []Member
	err := db.eachRow("members", func(row Row) error {
		m, err := decodeMember(row)
		if err == nil {
			out = append(out, m)
		}
		return err
	})
	// Keys are hex without padding, so file order is not ID order.
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return out, err
}

func decodeMember(row Row) (Member, error) {
	id, err := memberKey(row.Key)
	if err != nil {
		return Member{}, err
	}
	var j memberJSON
	if err := json.Unmarshal(row.Value, &j); err != nil {
		return Member{}, err
	}
	if j.ID != uint64(id) {
		return Member{}, fmt.Errorf("the row of member %s contains member %s", id, ID(j.ID))
	}
	return Member{row.Place, id, j.Name, j.PeerURLs, j.ClientURLs, j.IsLearner}, nil
}

// RemovedMembers reads bucket members_removed, in ID order.
func (db *DB) RemovedMembers() ([]ID, error) {
	var out []ID
	err := db.eachRow("members_removed", func(row Row) error {
		id, err := memberKey(row.Key)
		if err == nil {
			out = append(out, id)
		}
		return err
	})
	slices.Sort(out)
	return out, err
}

func memberKey(k []byte) (ID, error) {
	n, err := strconv.ParseUint(string(k), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("member ID %q is not a hex number", k)
	}
	return ID(n), nil
}
