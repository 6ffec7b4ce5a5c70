//go:build synctests

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"applier/config"
	"applier/ingest"
	"applier/merger"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// A bubble is a whole world in virtual time: brokers on a network in memory, a
// warehouse on a disk in memory, and any number of programs that run the same
// configuration. Everything in it belongs to one testing/synctest bubble, which
// fails the test if a goroutine is left behind.
type bubble struct {
	t       *testing.T
	network kfake.VirtualNetwork
	brokers *kfake.Cluster
	addrs   []string
	disk    *objstore.Mem
	table   *paimon.Table
	state   string // folder
	more    string // lines of the pipeline's block
	sasl    string // kafka.sasl of the configuration, if not empty
	top     string // more lines at its top
	login   scram.Auth
	ports   int
	members []*member
	want    *ledger

	controller int32 // of the brokers; it does not move
	cluster    string
	topicID    [16]byte
	leader     int32 // of partition 0 at the beginning
}

const (
	bubbleBrokers = 3
	firstPort     = 9101
	sessionOf     = 6 * time.Second // of the group; kfake's smallest
)

// inBubble runs f in a world with a topic of two partitions. more are the
// pipeline's lines besides source and target; opts are added to the brokers'.
func inBubble(t *testing.T, more string, f func(b *bubble), opts ...kfake.Opt) {
	inBubbleAs(t, more, scram.Auth{}, f, opts...)
}

// inBubbleAs is inBubble with brokers to which the test itself has to log in.
func inBubbleAs(t *testing.T, more string, login scram.Auth, f func(b *bubble), opts ...kfake.Opt) {
	state := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t, disk: objstore.NewMem(objstore.MemOptions{Now: time.Now}), state: state, more: more, login: login, ports: firstPort + 1000, want: newLedger()}
		ports := make([]int, bubbleBrokers)
		for i := range ports {
			ports[i] = firstPort + i
			b.addrs = append(b.addrs, fmt.Sprintf("127.0.0.1:%d", ports[i]))
		}
		var err error
		b.brokers, err = kfake.NewCluster(append([]kfake.Opt{
			kfake.NumBrokers(bubbleBrokers), kfake.Ports(ports...), kfake.ListenFn(b.network.Listen), kfake.SeedTopics(2, topic),
		}, opts...)...)
		require.NoError(t, err)
		defer b.close()
		b.create()
		cl := b.client()
		md := must(kadm.NewClient(cl).BrokerMetadata(context.Background()))
		b.controller, b.cluster = md.Controller, md.Cluster
		b.topicID, b.leader = b.brokers.TopicInfo(topic).TopicID, b.brokers.LeaderFor(topic, 0)
		cl.Close()
		f(b)
	})
}

// close ends what still runs, in good order.
func (b *bubble) close() {
	for _, m := range b.members {
		m.heal()
		m.drain()
	}
	b.brokers.Close()
	time.Sleep(time.Minute) // what is on its way arrives; what stays behind then is left for good
}

// create makes the pipeline's table.
func (b *bubble) create() {
	fields := orders()
	for i := range fields {
		fields[i].ID = i
	}
	s, err := paimon.NewSchema(fields, nil, map[string]string{paimon.OptBucket: "-1", paimon.OptDeletionVectors: "true"}, nil, 1)
	require.NoError(b.t, err)
	ctx := context.Background()
	require.NoError(b.t, paimon.CreateTable(ctx, b.disk, s))
	b.table, err = paimon.OpenTable(ctx, b.disk, paimon.Write)
	require.NoError(b.t, err)
}

// configuration of one more member.
func (b *bubble) configuration() *config.Config {
	b.ports += 2
	dir := filepath.Join(b.state, fmt.Sprint(b.ports))
	require.NoError(b.t, os.MkdirAll(filepath.Join(dir, "warehouse"), 0o755))
	sasl := ""
	if b.sasl != "" {
		sasl = ", sasl: " + b.sasl
	}
	text := fmt.Sprintf(`version: 1
kafka: { brokers: ["%s"], session_timeout: %s%s }
warehouse: %q
state_dir: %q
server: { listen: "127.0.0.1:%d", admin: { listen: "127.0.0.1:%d" } }
%spipelines:
  p:
    source: { topic: shop.orders, format: json }
    target: shop.orders
%s`, strings.Join(b.addrs, `", "`), sessionOf, sasl, filepath.Join(dir, "warehouse"), filepath.Join(dir, "state"), b.ports, b.ports+1, b.top, b.more)
	cfg, err := config.Parse(filepath.Join(dir, "applier.yml"), []byte(text), os.LookupEnv)
	require.NoError(b.t, err)
	return cfg
}

// member is one program of a bubble, with a network and a way to the disk of its own.
type member struct {
	b     *bubble
	app   *App
	link  *link
	store *objstore.Faulty
	log   *logbook
	http  string
	stop  context.CancelFunc // SIGTERM
	kill  context.CancelFunc // a second one
	ended chan error
	over  bool
}

// join starts a member.
func (b *bubble) join() *member {
	m := &member{b: b, link: &link{network: &b.network}, log: &logbook{}, ended: make(chan error, 1)}
	m.store = objstore.NewFaulty(b.disk.Attach(objstore.MemOptions{Now: time.Now}))
	cfg := b.configuration()
	m.http = "http://" + cfg.Server.Listen
	var err error
	m.app, err = New(cfg, Options{
		Log: slog.New(m.log), Listen: b.listen,
		Kafka: func(o *ingest.ClientOptions) { o.Dial = m.link.dial },
		Store: func(string) (objstore.Bucket, error) { return m.store, nil },
	})
	require.NoError(b.t, err)
	var ctx, force context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	force, m.kill = context.WithCancel(context.Background())
	go func() { m.ended <- m.app.Run(ctx, force) }()
	b.members = append(b.members, m)
	return m
}

func (b *bubble) listen(_ context.Context, network, address string) (net.Listener, error) {
	return b.network.Listen(network, address)
}

// drain ends a member as SIGTERM does; it must obey within the grace.
func (m *member) drain() {
	if m.over {
		return
	}
	m.over = true
	m.stop()
	m.wait(2 * time.Minute)
	m.kill()
}

// crash ends a member as a power cut does: the group is not told.
func (m *member) crash() {
	if m.over {
		return
	}
	m.over = true
	m.link.cut()
	m.kill()
	m.wait(5 * time.Minute) // the client, which tries to leave the group in vain
	m.stop()
}

func (m *member) wait(limit time.Duration) {
	m.b.t.Helper()
	select {
	case err := <-m.ended:
		require.NoError(m.b.t, err)
	case <-time.After(limit):
		require.FailNow(m.b.t, "the program does not end", "%s", m.log)
	}
}

// heal takes a member's faults away.
func (m *member) heal() {
	m.store.Clear()
	m.link.repair()
}

func (m *member) pipeline() *pipeline { return m.app.pipelines["p"] }

// status is that of the commit loop; false before there is one.
func (m *member) status() (merger.Status, bool) {
	p := m.pipeline()
	p.mu.Lock()
	a := p.applier
	p.mu.Unlock()
	if a == nil {
		return merger.Status{}, false
	}
	return a.Status(), true
}

// code is that of the halt, if there is one.
func (m *member) code() merger.Code {
	if s, ok := m.status(); ok && s.Halt != nil {
		return s.Halt.Code
	}
	return ""
}

// ready asks /readyz.
func (m *member) ready() (int, string) {
	cl := http.Client{Transport: &http.Transport{DialContext: m.b.network.DialContext, DisableKeepAlives: true}}
	resp, err := cl.Get(m.http + "/readyz")
	require.NoError(m.b.t, err)
	defer resp.Body.Close()
	return resp.StatusCode, readAll(resp.Body)
}

// eventually waits in virtual time for something that must come.
func (b *bubble) eventually(limit time.Duration, what string, ok func() bool) {
	b.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			require.FailNow(b.t, "in vain: "+what, "%s", b.story())
		}
	}
}

// story is what the members logged, for a failure.
func (b *bubble) story() string {
	var out strings.Builder
	if g := b.brokers.GroupInfo("applier.p"); g != nil {
		fmt.Fprintf(&out, "group: %s, generation %d\n", g.State, g.Epoch)
		for _, m := range g.Members {
			fmt.Fprintf(&out, "  %s has %v\n", m.MemberID, m.Assignment)
		}
	}
	for i, m := range b.members {
		how := "is over"
		if st, ok := m.status(); !m.over {
			how = fmt.Sprintf("lives: %v %+v", ok, st)
		}
		fmt.Fprintf(&out, "--- member %d %s\n%s", i, how, m.log)
	}
	return out.String()
}

// remove takes a broker away. kfake only closes the door; its connections end too.
func (b *bubble) remove(id int32) {
	b.t.Helper()
	require.NoError(b.t, b.brokers.RemoveNode(id))
	for _, m := range b.members {
		m.link.hangUp(fmt.Sprintf("localhost:%d", firstPort+int(id)))
		m.link.hangUp(b.addrs[id])
	}
}

// client is one of the brokers; it lives as long as the bubble's body.
func (b *bubble) client(opts ...kgo.Opt) *kgo.Client {
	if b.login.User != "" {
		opts = append(opts, kgo.SASL(b.login.AsSha256Mechanism()))
	}
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.addrs...), kgo.Dialer(b.network.DialContext), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.DefaultProduceTopic(topic), kgo.MetadataMinAge(10 * time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(90 << 20),
	}, opts...)...)
	require.NoError(b.t, err)
	return cl
}

// put writes changes of keys: a value upserts, an empty one deletes. A key's
// partition is its own.
func (b *bubble) put(changes ...keyed) {
	b.t.Helper()
	cl := b.client()
	defer cl.Close()
	b.putBy(cl, changes...)
}

func (b *bubble) putBy(cl *kgo.Client, changes ...keyed) {
	b.t.Helper()
	for _, c := range changes {
		require.NoError(b.t, cl.ProduceSync(context.Background(), c.record()).FirstErr())
		b.want.apply(c)
	}
}

// keyed is one change.
type keyed struct {
	partition int32
	id        int
	note      string // empty: a delete
}

func (c keyed) record() *kgo.Record {
	r := &kgo.Record{Topic: topic, Partition: c.partition, Key: fmt.Appendf(nil, `{"id":%d}`, c.id)}
	if c.note != "" {
		r.Value = fmt.Appendf(nil, `{"id":%d,"note":%q}`, c.id, c.note)
	}
	return r
}

func (c keyed) text() string { return fmt.Sprintf("%d %s", c.id, c.note) }

// ledger is the model: what the table must hold, as a mirror or with every
// change as a row of its own (all).
type ledger struct {
	rows map[int]string
	all  bool
	list []string
	next int
}

func newLedger() *ledger { return &ledger{rows: map[int]string{}} }

func (l *ledger) apply(c keyed) {
	switch {
	case l.all:
		l.list = append(l.list, c.text())
	case c.note == "":
		delete(l.rows, c.id)
	default:
		l.rows[c.id] = c.note
	}
}

// some makes n changes of a few keys over the partitions.
func (l *ledger) some(rng *rand.Rand, n int, partitions int32) []keyed {
	var out []keyed
	for range n {
		l.next++
		p := rng.Int32N(partitions)
		c := keyed{partition: p, id: int(p) + 100*rng.IntN(10), note: fmt.Sprint("n", l.next)}
		if !l.all && rng.IntN(5) == 0 {
			c.note = ""
		}
		out = append(out, c)
	}
	return out
}

func (l *ledger) texts() []string {
	out := slices.Clone(l.list)
	for id, note := range l.rows {
		out = append(out, keyed{id: id, note: note}.text())
	}
	slices.Sort(out)
	return out
}

// rows reads the newest snapshot, by another user of the disk.
func (b *bubble) rows() []string {
	b.t.Helper()
	ctx := context.Background()
	id, err := paimon.LatestSnapshotID(ctx, b.disk, b.table.Paths())
	require.NoError(b.t, err)
	out := []string{}
	if id == 0 {
		return out
	}
	snap, err := paimon.ReadSnapshot(ctx, b.disk, b.table.Paths(), id)
	require.NoError(b.t, err)
	st, err := b.table.State(ctx, snap)
	require.NoError(b.t, err)
	require.NoError(b.t, b.table.Scan(ctx, st, paimon.ScanOptions{}, func(rows *types.Batch) error {
		for i := range rows.Len() {
			r := rows.Row(i)
			out = append(out, keyed{id: int(r[0].I), note: string(r[1].B)}.text())
		}
		return nil
	}))
	slices.Sort(out)
	return out
}

// next is the newest position record's next offset by partition.
func (b *bubble) next() map[int32]int64 {
	b.t.Helper()
	own, _, err := merger.FindRecords(context.Background(), b.table, "p")
	require.NoError(b.t, err)
	out := map[int32]int64{}
	if own != nil {
		pos, err := own.Record.Positions()
		require.NoError(b.t, err)
		for p, at := range pos {
			out[p.Partition] = at.Next
		}
	}
	return out
}

// ends are the logs' ends by partition.
func (b *bubble) ends() map[int32]int64 {
	out := map[int32]int64{}
	for _, p := range b.brokers.PartitionInfos(topic) {
		out[p.Partition] = p.HighWatermark
	}
	return out
}

// caughtUp waits until the table stands at the ends of the logs.
func (b *bubble) caughtUp(limit time.Duration) {
	b.t.Helper()
	b.eventually(limit, fmt.Sprintf("the table at the ends %v (it stands at %v)", b.ends(), b.next()), func() bool { return maps.Equal(b.next(), b.ends()) })
}

// holds waits until everything is applied, and fails unless the table equals the model.
func (b *bubble) holds(limit time.Duration) {
	b.t.Helper()
	b.caughtUp(limit)
	require.Equal(b.t, b.want.texts(), b.rows(), "%s", b.story())
}

// commitGroup sets an offset of the group, as a tool does.
func (b *bubble) commitGroup(partition int32, at int64) {
	b.t.Helper()
	cl := b.client()
	defer cl.Close()
	o := kadm.Offsets{}
	o.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1})
	r, err := kadm.NewClient(cl).CommitOffsets(context.Background(), "applier.p", o)
	require.NoError(b.t, err)
	require.NoError(b.t, r.Error())
}

// grow adds partitions to the topic; the controller may be away for a moment.
func (b *bubble) grow(to int) {
	b.t.Helper()
	cl := b.client()
	defer cl.Close()
	b.eventually(time.Minute, "more partitions", func() bool {
		r, err := kadm.NewClient(cl).UpdatePartitions(context.Background(), to, topic)
		return err == nil && r.Error() == nil
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var errLine = errors.New("the line is dead")
