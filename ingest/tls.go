package ingest

import (
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// tlsProblem explains a certificate that was refused; nil for every other error.
func tlsProblem(broker string, err error) *Problem {
	var refused *tls.CertificateVerificationError
	if !errors.As(err, &refused) || len(refused.UnverifiedCertificates) == 0 {
		return nil
	}
	cert := refused.UnverifiedCertificates[0]
	names := cert.DNSNames
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return problem("K-TLS", "broker %s: %v (certificate of %q, issued by %q, for the names [%s], valid from %s to %s)", broker, refused.Err,
		cert.Subject.CommonName, cert.Issuer.CommonName, strings.Join(names, " "), cert.NotBefore.UTC().Format(time.RFC3339), cert.NotAfter.UTC().Format(time.RFC3339))
}

// connectHook tells of connections that certificates forbid: the client itself
// tries again for ever.
type connectHook struct{ tell func(Problem) }

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (h connectHook) OnBrokerConnect(m kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if p := tlsProblem(net.JoinHostPort(m.Host, strconv.Itoa(int(m.Port))), err); p != nil {
		h.tell(*p)
	}
}
