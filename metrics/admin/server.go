package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// Limits of both servers. They bound what a client can hold without sending or
// reading anything.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	publicTimeout  = 30 * time.Second // of a whole answer
	commandTimeout = 2 * time.Minute  // of a whole answer on the admin port; profiles take their time
	idleTimeout    = 30 * time.Second
	maxHeaderBytes = 8 << 10
	maxBodyBytes   = 64 << 10
	maxConns       = 256 // of each port
	shutdownGrace  = 5 * time.Second
)

// Options of a Server.
type Options struct {
	// Listen and AdminListen are the addresses of the two ports, as host:port.
	Listen, AdminListen string
	// Token allows requests to the admin port that do not come from this host;
	// empty refuses them.
	Token string
	// Gatherer is what /metrics shows.
	Gatherer prometheus.Gatherer
	Source   Source
	Control  Control
	Log      *slog.Logger
	// ListenFn opens both ports; nil is the ordinary network.
	ListenFn func(ctx context.Context, network, address string) (net.Listener, error)
}

// Server is the two HTTP servers. Make one with Listen.
type Server struct {
	public, admin   http.Server
	publicL, adminL net.Listener
	log             *slog.Logger
}

// Listen binds both ports, so that an address in use is found at start. The
// caller then calls Serve, or Close.
func Listen(ctx context.Context, o Options) (*Server, error) {
	if o.Gatherer == nil || o.Source == nil || o.Control == nil {
		return nil, errors.New("serving HTTP needs a gatherer, a source and a control")
	}
	listen := o.ListenFn
	if listen == nil {
		var lc net.ListenConfig
		listen = lc.Listen
	}
	public, err := listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening on server.listen %s: %w", o.Listen, err)
	}
	admin, err := listen(ctx, "tcp", o.AdminListen)
	if err != nil {
		public.Close()
		return nil, fmt.Errorf("listening on server.admin.listen %s: %w", o.AdminListen, err)
	}
	return newServer(o, public, admin), nil
}

func newServer(o Options, public, admin net.Listener) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{publicL: limitConns(public, maxConns), adminL: limitConns(admin, maxConns), log: o.Log}
	configure(&s.public, publicHandler(o), publicTimeout, o.Log)
	configure(&s.admin, adminHandler(o), commandTimeout, o.Log)
	return s
}

func configure(s *http.Server, h http.Handler, timeout time.Duration, log *slog.Logger) {
	s.Handler = http.MaxBytesHandler(h, maxBodyBytes)
	s.ReadHeaderTimeout = headerTimeout
	s.ReadTimeout = readTimeout
	s.WriteTimeout = timeout
	s.IdleTimeout = idleTimeout
	s.MaxHeaderBytes = maxHeaderBytes
	s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
}

// Addr returns the address of the public port.
func (s *Server) Addr() net.Addr { return s.publicL.Addr() }

// AdminAddr returns the address of the admin port.
func (s *Server) AdminAddr() net.Addr { return s.adminL.Addr() }

// Serve answers requests until ctx ends, then lets the running ones finish for
// a few seconds. It returns nil after that, or the first error of a server.
func (s *Server) Serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, e := range []struct {
		server   *http.Server
		listener net.Listener
	}{{&s.public, s.publicL}, {&s.admin, s.adminL}} {
		g.Go(func() error {
			if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serving %s: %w", e.listener.Addr(), err)
			}
			return nil
		})
		g.Go(func() error {
			<-ctx.Done()
			return s.stop(ctx, e.server)
		})
	}
	return g.Wait()
}

// stop ends a server gently, then firmly.
func (s *Server) stop(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		s.log.Warn("requests were cut off at shutdown", "err", err)
		return server.Close()
	}
	return nil
}

// Close gives the ports back without serving.
func (s *Server) Close() error {
	return errors.Join(s.publicL.Close(), s.adminL.Close())
}
