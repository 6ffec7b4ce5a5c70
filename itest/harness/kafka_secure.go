package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// SecureListener is a listener with TLS, SASL or both. Make one with
// NewSecureListener.
type SecureListener struct {
	TLS        bool
	ClientAuth bool   // clients must show a certificate of the same authority
	Mechanism  string // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; empty: no SASL
	User       string
	Password   string

	// PEM files for the clients: the authority, and a client's certificate and
	// key. Other has a certificate of an authority that the brokers do not know.
	CAFile, CertFile, KeyFile   string
	OtherCertFile, OtherKeyFile string

	server tlsPair
}

type tlsPair struct{ cert, key []byte }

// NewSecureListener makes certificates for 127.0.0.1 and localhost in the
// test's folder.
func NewSecureListener(t testing.TB, s SecureListener) *SecureListener {
	t.Helper()
	dir := t.TempDir()
	ca, caKey, err := authority("harness")
	if err == nil {
		s.server, err = issue(ca, caKey, "broker")
	}
	if err == nil {
		s.CAFile = filepath.Join(dir, "ca.pem")
		err = os.WriteFile(s.CAFile, encode("CERTIFICATE", ca.Raw), 0o600)
	}
	if err == nil {
		s.CertFile, s.KeyFile, err = clientFiles(dir, "client", ca, caKey)
	}
	if err == nil {
		var other *x509.Certificate
		var otherKey *ecdsa.PrivateKey
		if other, otherKey, err = authority("unknown"); err == nil {
			s.OtherCertFile, s.OtherKeyFile, err = clientFiles(dir, "other", other, otherKey)
		}
	}
	if err != nil {
		t.Fatalf("making certificates: %v", err)
	}
	return &s
}

func authority(name string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func issue(ca *x509.Certificate, caKey *ecdsa.PrivateKey, name string) (tlsPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tlsPair{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return tlsPair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		return tlsPair{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	return tlsPair{encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)}, err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func clientFiles(dir, name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (cert, key string, err error) {
	p, err := issue(ca, caKey, name)
	if err != nil {
		return "", "", err
	}
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	if err = os.WriteFile(cert, p.cert, 0o600); err == nil {
		err = os.WriteFile(key, p.key, 0o600)
	}
	return cert, key, err
}

// ClientTLS is the configuration of a client that shows the client certificate.
func (s *SecureListener) ClientTLS(t testing.TB) *tls.Config {
	t.Helper()
	ca, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
}

func (s *SecureListener) protocol() string {
	switch {
	case s.TLS && s.Mechanism != "":
		return "SASL_SSL"
	case s.TLS:
		return "SSL"
	default:
		return "SASL_PLAINTEXT"
	}
}

// properties are the listener's settings, and the format command's arguments.
func (s *SecureListener) properties(dir string) (map[string]string, []string, error) {
	const l = "listener.name.secure."
	props := map[string]string{}
	var format []string
	if s.TLS {
		store := filepath.Join(dir, "broker.pem")
		if err := os.WriteFile(store, append(append([]byte{}, s.server.key...), s.server.cert...), 0o600); err != nil {
			return nil, nil, fmt.Errorf("writing the broker's certificate: %w", err)
		}
		props[l+"ssl.keystore.type"], props[l+"ssl.keystore.location"] = "PEM", store
		props[l+"ssl.truststore.type"], props[l+"ssl.truststore.location"] = "PEM", s.CAFile
		props[l+"ssl.client.auth"] = "none"
		if s.ClientAuth {
			props[l+"ssl.client.auth"] = "required"
		}
	}
	switch {
	case s.Mechanism == "PLAIN":
		props[l+"sasl.enabled.mechanisms"] = "PLAIN"
		props[l+"plain.sasl.jaas.config"] = fmt.Sprintf(
			`org.apache.kafka.common.security.plain.PlainLoginModule required user_%s="%s";`, s.User, s.Password)
	case s.Mechanism != "":
		props[l+"sasl.enabled.mechanisms"] = s.Mechanism
		props[l+strings.ToLower(s.Mechanism)+".sasl.jaas.config"] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
		format = []string{"--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", s.Mechanism, s.User, s.Password)}
	}
	return props, format, nil
}

// SecureAddrs returns the secure listeners as host:port.
func (c *Cluster) SecureAddrs() []string {
	out := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		out[i] = fmt.Sprintf("127.0.0.1:%d", n.secure)
	}
	return out
}
