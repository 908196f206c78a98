package shell

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// jsonWord is an element of a list of arguments that is not plain text.
type jsonWord struct {
	Op     string            `json:"op,omitempty"`
	Fill   string            `json:"fill,omitempty"`
	Base64 string            `json:"base64,omitempty"`
	Join   []json.RawMessage `json:"join,omitempty"`
}

// MarshalJSON writes the command as a list. A string is an argument, {"base64"} one that is not valid text, {"fill"}
// one for the user to fill in, {"join"} one made of several such pieces, and {"op"} an operator of the shell. Sources
// are named by their labels.
func (c Command) MarshalJSON() ([]byte, error) {
	out := make([]json.RawMessage, 0, len(c.items))
	for _, it := range c.items {
		var b json.RawMessage
		var err error
		if it.op != "" {
			b, err = json.Marshal(jsonWord{Op: it.op})
		} else {
			b, err = it.marshal()
		}
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return json.Marshal(out)
}

func (w Word) marshal() (json.RawMessage, error) {
	if len(w.parts) == 0 {
		return json.RawMessage(`""`), nil
	}
	var pieces []json.RawMessage
	for _, p := range w.parts {
		var v any = p.text
		switch {
		case p.kind == fill:
			v = jsonWord{Fill: p.text}
		case !utf8.ValidString(p.text):
			v = jsonWord{Base64: base64.StdEncoding.EncodeToString([]byte(p.text))}
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, b)
	}
	if len(pieces) == 1 {
		return pieces[0], nil
	}
	return json.Marshal(jsonWord{Join: pieces})
}

// UnmarshalJSON reads the list that MarshalJSON writes.
func (c *Command) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	c.items = nil
	for _, raw := range list {
		var j jsonWord
		if len(raw) > 0 && raw[0] == '{' {
			if err := json.Unmarshal(raw, &j); err != nil {
				return err
			}
		}
		if j.Op != "" {
			if !operators[j.Op] {
				return fmt.Errorf("%q is not an operator of a command", j.Op)
			}
			c.items = append(c.items, item{op: j.Op})
			continue
		}
		parts, err := unmarshalParts(raw, true)
		if err != nil {
			return err
		}
		c.items = append(c.items, item{Word: Word{parts}.merged()})
	}
	return nil
}

// unmarshalParts reads one word, or one piece of a word.
func unmarshalParts(raw json.RawMessage, whole bool) ([]part, error) {
	if len(raw) == 0 || raw[0] != '{' {
		var s string
		err := json.Unmarshal(raw, &s)
		return []part{{text: s}}, err
	}
	var j jsonWord
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, err
	}
	switch {
	case j.Fill != "":
		if !isFill(j.Fill) {
			return nil, fmt.Errorf("%q is not a valid name of a placeholder", j.Fill)
		}
		return []part{{j.Fill, fill}}, nil
	case j.Base64 != "":
		b, err := base64.StdEncoding.DecodeString(j.Base64)
		return []part{{text: string(b)}}, err
	case len(j.Join) > 0 && whole:
		var parts []part
		for _, piece := range j.Join {
			p, err := unmarshalParts(piece, false)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p...)
		}
		return parts, nil
	}
	return nil, errors.New("a piece of a command must be text, base64, fill or join")
}

// isFill reports whether a name can come from Format or FillFor. Such a name is printed without quotes.
func isFill(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isCapital(c) && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return name != ""
}
