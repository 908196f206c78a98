package replay

import (
	"strconv"
	"testing"
)

// TestKeysAndPutsAreBounded: keys and puts together are remembered up to a limit. What is remembered is kept up to date
// above it, and of ranges nothing is certain any more.
func TestKeysAndPutsAreBounded(t *testing.T) {
	c := &certainty{keys: make(map[string]certainKey, maxCertain), put: make(map[string]uint64, maxCertain)}
	for i := range maxCertain / 2 {
		name := strconv.Itoa(i)
		c.keys[name] = certainKey{}
		if i > 1 {
			c.put[name] = 1
		}
	}
	put := func(key string) keptOp { return keptOp{key: []byte(key), put: true, valued: true, sum: 4} }
	c.took(keptOp{key: []byte("k"), end: []byte("l")}, 5)
	c.took(put("k1"), 6)
	if _, have := c.keys["k1"]; !have || c.full || len(c.ranges) != 1 || c.put["k1"] != 6 {
		t.Fatalf("%d keys and %d puts are too many", len(c.keys), len(c.put))
	}
	c.took(put("k2"), 7)
	if _, have := c.keys["k2"]; have || !c.full || c.ranges != nil || c.put["k2"] != 0 {
		t.Errorf("%d keys and %d puts are not too many", len(c.keys), len(c.put))
	}
	if c.took(put("k1"), 8); c.keys["k1"].index != 8 {
		t.Errorf("a key that is remembered is that of entry %d", c.keys["k1"].index)
	}
}
