package deploy

import (
	"net/url"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/godelayed/delayed/inspect/scale"
)

// scaledObject is as much of KEDA's type as the manifest uses: KEDA's own module needs many others.
type scaledObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount int `json:"minReplicaCount"`
		MaxReplicaCount int `json:"maxReplicaCount"`
		PollingInterval int `json:"pollingInterval"`
		CooldownPeriod  int `json:"cooldownPeriod"`
		Triggers        []struct {
			Type       string `json:"type"`
			MetricType string `json:"metricType"`
			Metadata   struct {
				URL           string `json:"url"`
				ValueLocation string `json:"valueLocation"`
				TargetValue   string `json:"targetValue"`
			} `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// manifests are the files of Kubernetes.
type manifests struct {
	deployment appsv1.Deployment
	disruption policyv1.PodDisruptionBudget
	hpa        autoscalingv2.HorizontalPodAutoscaler
	scaled     scaledObject
	service    corev1.Service
}

// decode decodes all files strictly, as kubectl apply --validate=strict does: unknown fields, fields that are there
// twice, and fields in other letters are errors.
func decode(t *testing.T) *manifests {
	t.Helper()
	m := new(manifests)
	into := map[string]any{
		"deployment.yaml": &m.deployment, "disruption.yaml": &m.disruption, "hpa.yaml": &m.hpa,
		"scaledobject.yaml": &m.scaled, "service.yaml": &m.service,
	}
	files, err := filepath.Glob("kubernetes/*")
	if err != nil || len(files) != len(into) {
		t.Fatalf("%v, %d files, expected %d", err, len(files), len(into))
	}
	for name, object := range into {
		if err := decodeInto([]byte(read(t, filepath.Join("kubernetes", name))), object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return m
}

func decodeInto(text []byte, object any) error {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	faults, err := strictjson.UnmarshalStrict(asJSON, object)
	if err == nil && len(faults) > 0 {
		err = faults[0]
	}
	return err
}

func TestManifests(t *testing.T) {
	m := decode(t)
	name := m.deployment.Name
	labels := m.deployment.Spec.Template.Labels
	for _, test := range []struct{ what, got, want string }{
		{"apiVersion of the Deployment", m.deployment.APIVersion + " " + m.deployment.Kind, "apps/v1 Deployment"},
		{"selector of the Deployment", m.deployment.Spec.Selector.MatchLabels["app"], labels["app"]},
		{"selector of the PodDisruptionBudget", m.disruption.Spec.Selector.MatchLabels["app"], labels["app"]},
		{"apiVersion of that", m.disruption.APIVersion + " " + m.disruption.Kind, "policy/v1 PodDisruptionBudget"},
		{"selector of the Service", m.service.Spec.Selector["app"], labels["app"]},
		{"apiVersion of that", m.service.APIVersion + " " + m.service.Kind, "v1 Service"},
		{"target of the HPA", m.hpa.Spec.ScaleTargetRef.Kind, "Deployment"},
		{"name of that", m.hpa.Spec.ScaleTargetRef.Name, name},
		{"apiVersion of that", m.hpa.APIVersion + " " + m.hpa.Kind, "autoscaling/v2 HorizontalPodAutoscaler"},
		{"target of KEDA", m.scaled.Spec.ScaleTargetRef.Name, name},
		{"apiVersion of that", m.scaled.APIVersion + " " + m.scaled.Kind, "keda.sh/v1alpha1 ScaledObject"},
	} {
		if test.got != test.want || test.want == "" {
			t.Errorf("%s: expected %q, found %q", test.what, test.want, test.got)
		}
	}
	if m.deployment.Spec.Replicas != nil {
		t.Error("the Deployment has a number of replicas, which would undo what the autoscaler does at each apply")
	}
}

// TestPodLetsTheWorkerFinish: what Kubernetes does to the pod fits what the settings of the worker.
func TestPodLetsTheWorkerFinish(t *testing.T) {
	pod := decode(t).deployment.Spec.Template.Spec
	worker := pod.Containers[0]
	env := settings{}
	for _, v := range worker.Env {
		if env[v.Name] = v.Value; v.ValueFrom != nil {
			env[v.Name] = "redis://:secret@redis:6379/0"
		}
	}
	grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	if grace < env.stopping(t) || worker.Lifecycle != nil {
		t.Errorf("%v to stop, expected at least %v; hooks %v", grace, env.stopping(t), worker.Lifecycle)
	}
	if most := worker.Resources.Limits.Memory().Value(); env.maxMemory(t) > most*9/10 {
		t.Errorf("the worker ends at %s, which is too near to %d bytes", env["DELAYED_MAX_MEMORY"], most)
	}
	probes := map[string]*corev1.Probe{"/readyz": worker.ReadinessProbe, "/healthz": worker.LivenessProbe}
	for path, probe := range probes {
		port := strconv.Itoa(int(worker.Ports[0].ContainerPort))
		if get := probe.HTTPGet; get.Path != path || get.Port.String() != worker.Ports[0].Name ||
			env["DELAYED_LISTEN"] != ":"+port {
			t.Errorf("%s: probed at %s, port %s, while the worker listens at %s", path, get.Path, get.Port.String(),
				env["DELAYED_LISTEN"])
		}
	}
	if p := worker.LivenessProbe; p.PeriodSeconds*p.FailureThreshold < 120 {
		t.Error("a short outage of Redis restarts all workers")
	}
	env.accepted(t)
}

// TestMetricOfTheHPA is one that the rules of contrib/prometheus record.
func TestMetricOfTheHPA(t *testing.T) {
	metric := decode(t).hpa.Spec.Metrics[0].External
	rules := read(t, "../../contrib/prometheus/scaling.yml")
	if !strings.Contains(rules, "record: "+metric.Metric.Name+"\n") {
		t.Errorf("nothing records %s", metric.Metric.Name)
	}
	if queue := metric.Metric.Selector.MatchLabels["queue"]; queue != "mail" || metric.Target.AverageValue == nil {
		t.Errorf("queue %q, target %v", queue, metric.Target)
	}
}

// TestScaledObject: KEDA asks for a number that the endpoint /scale has, with parameters that it takes.
func TestScaledObject(t *testing.T) {
	m := decode(t)
	trigger := m.scaled.Spec.Triggers[0]
	fields := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[scale.Answer]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = true
	}
	if !fields[trigger.Metadata.ValueLocation] {
		t.Errorf("an answer has no %s", trigger.Metadata.ValueLocation)
	}
	u, err := url.Parse(trigger.Metadata.URL)
	host := m.service.Name + ":" + strconv.Itoa(int(m.service.Spec.Ports[0].Port))
	if err != nil || u.Path != "/scale" || u.Host != host {
		t.Errorf("%s: %v", trigger.Metadata.URL, err)
	}
	for name, values := range u.Query() {
		switch name {
		case "queue":
		case "target":
			if _, err := time.ParseDuration(values[0]); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("unknown parameter %s", name)
		}
	}
	if trigger.Type != "metrics-api" || trigger.MetricType != "AverageValue" || trigger.Metadata.TargetValue != "1" {
		t.Errorf("%+v", trigger)
	}
}

// TestDecodeIsStrict: the decoder refuses what kubectl refuses.
func TestDecodeIsStrict(t *testing.T) {
	text := read(t, "kubernetes/deployment.yaml")
	for what, change := range map[string][2]string{
		"an unknown field":        {"terminationGracePeriodSeconds:", "terminationGraceSeconds:"},
		"a field in other case":   {"maxSurge:", "MaxSurge:"},
		"a field that is twice":   {"  strategy:\n", "  strategy: {}\n  strategy:\n"},
		"a string for a number":   {"containerPort: 8080", "containerPort: http"},
		"an unknown nested field": {"periodSeconds: 5", "period: 5"},
	} {
		changed := strings.Replace(text, change[0], change[1], 1)
		if changed == text {
			t.Errorf("%s: %q is not there", what, change[0])
		}
		if err := decodeInto([]byte(changed), new(appsv1.Deployment)); err == nil {
			t.Errorf("%s is no error", what)
		}
	}
}
