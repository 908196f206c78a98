package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/internal/yamldoc"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Seal sets the digest of a plan that is complete.
func (p *Plan) Seal() error {
	d, err := p.digest()
	p.Digest = d
	return err
}

func (p *Plan) digest() (string, error) {
	c := *p
	c.Digest = ""
	b, err := json.Marshal(&c)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// YAML returns the plan as a file for people and for Load, fields in the order of the document.
func (p *Plan) YAML() ([]byte, error) {
	j, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(j, &n); err != nil {
		return nil, err
	}
	plain(&n)
	var b bytes.Buffer
	b.WriteString("# etcd-medic repair plan. Read it, rehearse it, then apply it:\n#   etcd-medic repair rehearse " +
		"PLAN\n#   etcd-medic repair apply PLAN --mode MODE\n" +
		"# Do not edit: the digest would no longer fit. Other choices are flags of etcd-medic repair plan.\n" +
		"# The digest is an integrity check, not a signature: it shows that a plan was changed, not who made it. " +
		"Take plans from people you trust.\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&n); err != nil {
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return shell.AppendSafe(nil, b.Bytes(), true), nil // plain has double-quoted what this changes
}

// plain turns the flow style that JSON was read in into block style. A list of arguments remains on its line.
func plain(n *yaml.Node) {
	n.Style &^= yaml.FlowStyle
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		n.Style = 0
		if !shell.IsSafe([]byte(n.Value)) {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	for i, c := range n.Content {
		plain(c)
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			switch n.Content[i-1].Value {
			case "args":
				c.Style |= yaml.FlowStyle
			case "saveArgs":
				for _, list := range c.Content {
					list.Style |= yaml.FlowStyle
				}
			}
		}
	}
}

// Save writes the plan to a new file and flushes it; an existing file is never overwritten.
func (p *Plan) Save(path string) error {
	b, err := p.YAML()
	if err != nil {
		return err
	}
	return writeNew(path, b)
}

// writeNew creates a file that must not exist, writes it and flushes file and folder. Nothing is left if that
// fails.
func writeNew(path string, b []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return refusal.New("choose another name with -o, or move the old file away",
			"%s exists; nothing is overwritten",
			path)
	}
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = syncDir(filepath.Dir(path)) // so that the name survives a power loss
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// writeBoth writes two new files, the second one first: where the first is there, both are.
func writeBoth(first string, b1 []byte, second string, b2 []byte) error {
	if err := writeNew(second, b2); err != nil {
		return err
	}
	if err := writeNew(first, b1); err != nil {
		return errors.Join(err, os.Remove(second))
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// maxPlan bounds a plan; plans for big clusters have some hundred KiB.
const maxPlan = 64 << 20

// Load reads a plan and checks that it was not changed.
func Load(path string) (*Plan, error) {
	b, err := readPlan(path)
	if err != nil {
		return nil, err
	}
	return decode(path, b)
}

// readPlan returns the bytes of a plan.
func readPlan(path string) ([]byte, error) {
	b, err := regular.ReadFile(path, maxPlan)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{path}
	}
	return b, err
}

// MissingError says that there is no file at the path of a plan.
type MissingError struct{ Path string }

// Error implements error.
func (e *MissingError) Error() string { return "there is no plan " + e.Path }

// Is makes errors.Is find fs.ErrNotExist.
func (e *MissingError) Is(target error) bool { return target == fs.ErrNotExist }

// decode reads the bytes of a plan; path is for messages.
func decode(path string, b []byte) (*Plan, error) {
	if err := checkVersion(path, b); err != nil {
		return nil, err
	}
	p := &Plan{}
	if err := decodeYAML(b, p); err != nil {
		return nil, refusal.New(planAnew, "%s is not a repair plan that this program reads: %v", path, err)
	}
	d, err := p.digest()
	if err != nil {
		return nil, err
	}
	if d != p.Digest {
		return nil, refusal.New("make a new plan; other choices are flags of etcd-medic repair plan",
			"%s was changed after it was made: its digest (an integrity check, not a signature) is %s, its content "+
				"gives %s", path, short(p.Digest), short(d))
	}
	if err := p.agrees(); err != nil {
		return nil, refusal.New("make a new plan with etcd-medic repair plan", "%s: %v", path, err)
	}
	return p, nil
}

// agrees checks that every command reads as its list of arguments says: people take the text, programs the list.
func (p *Plan) agrees() error {
	for _, w := range p.Ways {
		for _, s := range w.Steps {
			for _, c := range s.ByHand {
				if c.Run != c.Args.String() {
					return fmt.Errorf("a command of step %s is not what its list of arguments says", s.ID)
				}
			}
		}
	}
	if x := p.Missing; x != nil && (x.Give.Run != x.Give.Args.String() || x.GiveUp.Run != x.GiveUp.Args.String()) {
		return errors.New("a command that plans again is not what its list of arguments says")
	}
	if !slices.Equal(p.Lost.Save, shell.Texts(p.Lost.SaveArgs)) && len(p.Lost.Save)+len(p.Lost.SaveArgs) > 0 {
		return errors.New("a command that saves what is lost is not what its list of arguments says")
	}
	if p.Lost.Mend != p.Lost.MendArgs.String() {
		return errors.New("the command that mends records is not what its list of arguments says")
	}
	return nil
}

const planAnew = "make a new plan with etcd-medic repair plan; its sources are listed in the old one under inputs"

// checkVersion refuses plans of another format before anything else is read: the meaning of their fields is unknown.
func checkVersion(path string, b []byte) error {
	var head struct {
		Version int `yaml:"schemaVersion"`
	}
	err := yamldoc.Check(b)
	if err == nil {
		err = yaml.Unmarshal(b, &head)
	}
	switch {
	case err != nil || head.Version == 0:
		return refusal.New(planAnew, "%s is not a repair plan", path)
	case head.Version < SchemaVersion:
		return refusal.New(planAnew, "%s was written by an older etcd-medic: its plan format is %d, this program "+
			"reads %d",
			path, head.Version, SchemaVersion)
	case head.Version > SchemaVersion:
		return refusal.New("use the etcd-medic that wrote it, or make a new plan", "%s was written by a newer "+
			"etcd-medic: its plan format is %d, this program reads %d", path, head.Version, SchemaVersion)
	}
	return nil
}

// decodeYAML reads YAML into a document with JSON tags and refuses fields that it does not know.
func decodeYAML(b []byte, to any) error {
	var v any
	if err := yaml.Unmarshal(b, &v); err != nil {
		return err
	}
	j, err := json.Marshal(v)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(j))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

func short(s string) string { return fmt.Sprintf("%.12s", s) }
