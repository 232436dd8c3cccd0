package launch

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	jobpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
)

// engineOptions are options of engines that Beam's SDK for Go cannot set.
var engineOptions = map[string]string{
	// Flink must not run a stage before the stages that it reads from have ended. Otherwise it
	// would wait forever for a stage with several outputs, one of which waits for another; and it
	// would need as many slots as the work has parts. Other engines ignore this.
	"beam:option:execution_mode_for_batch:v1": "BATCH_FORCED",
	// How long an idle worker waits for work: without this, each part of each stage may start a
	// worker. A dead worker is kept as long, and work given to it fails: beam/README.md recommends
	// longer breaks between attempts.
	"beam:option:environment_cache_millis:v1": "2000",
}

// An engine is the job server that runs the pipeline.
type engine struct {
	endpoint string

	job atomic.Pointer[string] // job ID, once the server has the job
}

// dialAs makes Beam call job servers through the engine.
func dialAs(e *engine) {
	grpcx.Dial = func(ctx context.Context, endpoint string, timeout time.Duration) (*grpc.ClientConn, error) {
		return e.dial(ctx, endpoint, timeout)
	}
}

// dial is like grpcx.DefaultDial, but intercepts the calls.
func (e *engine) dial(ctx context.Context, endpoint string, timeout time.Duration) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := grpc.DialContext(ctx, endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithBlock(), //nolint:staticcheck // NewClient does not wait
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)), grpc.WithUnaryInterceptor(e.call))
	if err != nil {
		return nil, fmt.Errorf("no server answers at %s: %w", endpoint, err)
	}
	return connection, nil
}

// call sends engineOptions with a job, and remembers the job ID.
func (e *engine) call(
	ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if job, ok := request.(*jobpb.PrepareJobRequest); ok {
		fields := job.GetPipelineOptions().GetFields()
		for name, value := range engineOptions {
			fields[name] = structpb.NewStringValue(value)
		}
	}
	if _, ok := request.(*jobpb.RunJobRequest); ok {
		ctx = context.WithoutCancel(ctx) // otherwise a job may run with an unknown ID
	}
	err := call(ctx, method, request, reply, connection, options...)
	if started, ok := reply.(*jobpb.RunJobResponse); ok && err == nil {
		id := started.GetJobId()
		e.job.Store(&id)
	}
	return err
}

// answers returns an error unless the job server answers.
func (e *engine) answers(ctx context.Context) error {
	connection, err := e.dial(ctx, e.endpoint, serverTime)
	if err != nil {
		return err
	}
	return connection.Close()
}

// cancel ends the job, if any, and waits for its end.
func (e *engine) cancel(ctx context.Context) error {
	job := e.job.Load()
	if job == nil {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, serverTime)
	defer end()
	connection, err := e.dial(ctx, e.endpoint, serverTime)
	if err != nil {
		return err
	}
	defer connection.Close()
	client := jobpb.NewJobServiceClient(connection)
	if _, err := client.Cancel(ctx, &jobpb.CancelJobRequest{JobId: *job}); err != nil {
		return err
	}
	for {
		state, err := client.GetState(ctx, &jobpb.GetJobStateRequest{JobId: *job})
		if err != nil {
			return err
		}
		switch state.GetState() {
		case jobpb.JobState_CANCELLED, jobpb.JobState_DONE, jobpb.JobState_FAILED:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the job is still %s: %w", state.GetState(), ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// serverTime is how long a job server may take to answer, and to end a job.
const serverTime = 30 * time.Second
