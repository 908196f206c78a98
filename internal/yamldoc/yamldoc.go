// Package yamldoc bounds YAML from files that anyone may have written. The decoder compares every key of a mapping with
// all others and keeps an error for each pair of equal ones, and follows aliases: a small file can keep it busy for
// hours or fill the memory.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

const (
	// maxMarks bounds the characters that can begin a value, and so the values in memory, at some 200 bytes each.
	maxMarks = 2_000_000
	// maxKeys bounds the keys of one mapping.
	maxKeys = 1000
)

var (
	errLarge   = errors.New("the file has more values than are read")
	errAliases = errors.New("aliases are not read")
)

// Check returns an error for a text that is not YAML, or not one to decode.
func Check(b []byte) error {
	marks := 0
	for _, c := range []byte("\n,:[{&-") {
		marks += bytes.Count(b, []byte{c})
	}
	if marks > maxMarks {
		return errLarge
	}
	var n yaml.Node
	if err := yaml.Unmarshal(b, &n); err != nil {
		return err
	}
	return check(&n)
}

func check(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		return errAliases
	}
	if n.Kind == yaml.MappingNode {
		if len(n.Content) > 2*maxKeys {
			return fmt.Errorf("line %d: a mapping of more than %d keys", n.Line, maxKeys)
		}
		seen := map[string]bool{}
		for i := 0; i < len(n.Content); i += 2 {
			if k := n.Content[i]; k.Kind == yaml.ScalarNode && seen[k.Value] {
				return fmt.Errorf("line %d: the key is there already", k.Line)
			} else if k.Kind == yaml.ScalarNode {
				seen[k.Value] = true
			}
		}
	}
	for _, c := range n.Content {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}
