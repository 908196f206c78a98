package plan

import (
	"errors"
	"io/fs"

	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/internal/sshsig"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/shell"
)

// SignatureNamespace is what signatures of plans are for; ssh-keygen calls it -n.
const SignatureNamespace = "etcd-medic-plan"

// maxSignature bounds the file of a signature, which has some kilobytes.
const maxSignature = 1 << 20

// SignaturePath is the file of the signature of a plan.
func SignaturePath(file string) string { return file + ".sig" }

// Signer reads the private SSH key that signs a plan which is written to file.
func Signer(key, file string) (*sshsig.Signer, error) {
	s, err := sshsig.ReadSigner(key)
	if errors.Is(err, sshsig.ErrPassphrase) {
		return nil, refusal.New("sign the plan after it is made: "+shell.Format("ssh-keygen -Y sign -n "+
			SignatureNamespace+" -f {} {}", shell.Operand(key), shell.Operand(file)).String(),
			"the key in %s has a passphrase", key)
	}
	return s, err
}

// SaveSigned writes the plan, and its signature next to it, to new files: both, or none.
func (p *Plan) SaveSigned(path string, s *sshsig.Signer) error {
	b, err := p.YAML()
	if err != nil {
		return err
	}
	sig, err := s.Sign(SignatureNamespace, b)
	if err != nil {
		return err
	}
	return writeBoth(path, b, SignaturePath(path), sig)
}

// LoadSigned is Load for a plan that one of the public keys in the file keys must have signed. It returns the
// fingerprint of that key.
func LoadSigned(path, keys string) (p *Plan, fingerprint string, err error) {
	trusted, err := sshsig.ReadKeys(keys)
	if err != nil {
		return nil, "", err
	}
	b, err := readPlan(path)
	if err != nil {
		return nil, "", err
	}
	sig, err := regular.ReadFile(SignaturePath(path), maxSignature)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", refusal.New("make a plan with --sign-with, or get the signature from whoever made this one",
			"%s has no signature: there is no %s", path, SignaturePath(path))
	}
	if err != nil {
		return nil, "", err
	}
	if fingerprint, err = trusted.Verify(SignatureNamespace, b, sig); err != nil {
		return nil, "", refusal.New("take plans from people you trust only", "the signature of %s does not hold: %v",
			path, err)
	}
	p, err = decode(path, b)
	return p, fingerprint, err
}
