//! Names of containers, from the paths of their cgroups.

/// The number of digits shown of an id, as in `docker ps`.
const SHORT_LENGTH: usize = 12;
/// The length of a complete id, in hexadecimal digits.
const ID_LENGTH: usize = 64;

/// Prefixes of the names of systemd's scopes, `PREFIX-ID.scope`, each with the name of the runtime.
const SCOPES: [(&str, &str); 4] = [
    ("docker", "docker"),
    ("libpod", "podman"),
    ("cri-containerd", "containerd"),
    ("crio", "cri-o"),
];

/// Returns the name of the innermost container that a cgroup belongs to: `RUNTIME:` with the first 12 digits of the container's
/// id, or with the container's name. If the path does not name the runtime, `RUNTIME` is `pod`, `container` or `machine`.
/// `None` if the path names no container.
///
/// ```text
/// /system.slice/docker-0123456789abcdef….scope      docker:0123456789ab
/// /kubepods.slice/…/cri-containerd-0123….scope      containerd:0123456789ab
/// /kubepods/burstable/pod12-34/0123…                pod:0123456789ab
/// /lxc.payload.web/system.slice                     lxc:web
/// /machine.slice/machine-web.scope                  machine:web
/// ```
pub(crate) fn container_of(cgroup: &str) -> Option<String> {
    let mut parent: Option<&str> = None;
    let mut innermost = None;
    for part in cgroup.split('/').filter(|part| !part.is_empty()) {
        innermost = container(parent, part).or(innermost);
        parent = Some(part);
    }
    innermost
}

/// Returns the name of the container if the directory `part` is a container's cgroup; `parent` is the directory above it.
fn container(parent: Option<&str>, part: &str) -> Option<String> {
    if let Some(scope) = part.strip_suffix(".scope") {
        if let Some(name) = scope.strip_prefix("machine-") {
            return Some(format!("machine:{}", unescaped(name)));
        }
        let (prefix, id) = scope.rsplit_once('-')?;
        let (_, runtime) = SCOPES.iter().find(|(known, _)| *known == prefix)?;
        return short_id(id).map(|id| format!("{runtime}:{id}"));
    }
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return Some(format!("lxc:{name}"));
    }
    if parent == Some("lxc") {
        return Some(format!("lxc:{part}"));
    }
    let id = short_id(part)?;
    let runtime = match parent {
        Some("docker") => "docker",
        Some(parent) if parent.starts_with("pod") => "pod",
        _ => "container",
    };
    Some(format!("{runtime}:{id}"))
}

fn short_id(text: &str) -> Option<&str> {
    let is_id = text.len() == ID_LENGTH && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    text.get(..SHORT_LENGTH).filter(|_| is_id)
}

/// Replaces systemd's escapes of printable ASCII characters other than space, such as `\x2d` for a hyphen.
fn unescaped(name: &str) -> String {
    let mut text = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("\\x") {
        text.push_str(before);
        let byte = after
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(u8::is_ascii_graphic) {
            Some(byte) => {
                text.push(char::from(byte));
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                text.push_str("\\x");
                rest = after;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::container_of;

    #[test]
    fn containers_are_found_in_paths_of_several_runtimes() {
        let id = "0123456789abcdef".repeat(4);
        for (path, name) in [
            (
                format!("/system.slice/docker-{id}.scope"),
                Some("docker:0123456789ab"),
            ),
            (format!("/docker/{id}"), Some("docker:0123456789ab")),
            (
                format!("/machine.slice/libpod-{id}.scope/container"),
                Some("podman:0123456789ab"),
            ),
            (
                format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
                Some("containerd:0123456789ab"),
            ),
            (
                format!("/kubepods/burstable/pod12-34/{id}"),
                Some("pod:0123456789ab"),
            ),
            (
                format!("/kubepods.slice/crio-{id}.scope"),
                Some("cri-o:0123456789ab"),
            ),
            ("/lxc.payload.web/system.slice".to_owned(), Some("lxc:web")),
            ("/lxc/web/init.scope".to_owned(), Some("lxc:web")),
            (
                "/machine.slice/machine-my\\x2dweb.scope/payload".to_owned(),
                Some("machine:my-web"),
            ),
            // A container in another one.
            (
                format!("/lxc/outer/docker/{id}"),
                Some("docker:0123456789ab"),
            ),
            // The monitor of podman is no container.
            (format!("/machine.slice/libpod-conmon-{id}.scope"), None),
            ("/user.slice/user-0.slice/session-1.scope".to_owned(), None),
            ("/system.slice/docker.service".to_owned(), None),
            ("/docker/short".to_owned(), None),
            ("/".to_owned(), None),
            (
                "/machine.slice/machine-a\\xzz.scope".to_owned(),
                Some("machine:a\\xzz"),
            ),
        ] {
            assert_eq!(container_of(&path).as_deref(), name, "{path}");
        }
    }
}
